use super::super::message::MAX_PEER_ID_BYTES;
use super::super::notice::MAX_NOTICE_CHARS;
use super::super::revision::EraChoice;
use super::super::schema::ClientInfo;
use super::*;

fn ready_machine(era: EraChoice) -> ClientMachine<u64> {
    let opening: &[u8] = match era {
        EraChoice::Modern => {
            br#"{"id":"discover-1","result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#
        }
        _ => br#"{"id":1,"result":{"protocolVersion":"2025-06-18"}}"#,
    };
    let mut config = ClientConfig::new(ClientInfo::new("test", "1"));
    config.era = era;
    let mut machine = ClientMachine::new(config);
    let now = Instant::now();
    machine.start(now);
    machine.handle_message(now, opening);
    assert!(matches!(machine.poll_output(), Some(Output::Ready(_))));
    machine.outgoing().clear();
    machine
}

#[test]
fn a_method_of_any_length_is_repeated_only_in_part() {
    let method = "m".repeat(100_000);
    let asked = format!(r#"{{"id":7,"method":"{method}"}}"#);
    let of_no_subscription = format!(
        r#"{{"method":"{method}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":3}}}}}}"#
    );
    for (era, message) in [
        (EraChoice::Legacy, &asked),
        (EraChoice::Modern, &asked),
        (EraChoice::Legacy, &of_no_subscription),
        (EraChoice::Modern, &of_no_subscription),
    ] {
        let mut machine = ready_machine(era);
        machine.handle_message(Instant::now(), message.as_bytes());
        let mut said = machine.outgoing().len();
        while let Some(output) = machine.poll_output() {
            let Output::Notice(Notice::Problem(problem)) = output else { panic!("{era:?}: {output:?}") };
            assert!(problem.message.contains("mmm"), "{}", problem.message);
            said += problem.message.len();
        }
        let most = MAX_NOTICE_CHARS + MAX_PEER_ID_BYTES;
        assert!((1..=most).contains(&said), "{era:?}: {said} bytes about {message:.70}");
    }
}
