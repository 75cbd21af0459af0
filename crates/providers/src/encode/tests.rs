use super::*;
use proptest::prelude::*;

/// Writes each message with what it can see before it, so that a wrong take-over shows.
struct Looking;

impl EncodeMessage for Looking {
    fn encode(&self, messages: &[Arc<Message>], index: usize, marked: bool, out: &mut Vec<u8>) {
        let before = index.checked_sub(1).map(|at| messages[at].text()).unwrap_or_default();
        let mark = if marked { "!" } else { "" };
        out.extend_from_slice(format!(",[{before}<{}{mark}]", messages[index].text()).as_bytes());
    }
}

fn fresh(messages: &[Arc<Message>], marked: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    for index in 0..messages.len() {
        Looking.encode(messages, index, marked.contains(&index), &mut out);
    }
    out
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize, u8),
    Fork(usize, usize),
    Cut(usize, usize),
    /// The same text in a new allocation, in the middle.
    Replace(usize, usize),
    Drop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_usize, any::<u8>()).prop_map(|(s, n)| Step::Push(s, n)),
        1 => (0..4_usize, 0..4_usize).prop_map(|(a, b)| Step::Fork(a, b)),
        1 => (0..4_usize, 0..8_usize).prop_map(|(s, n)| Step::Cut(s, n)),
        1 => (0..4_usize, 0..8_usize).prop_map(|(s, n)| Step::Replace(s, n)),
        1 => (0..4_usize).prop_map(Step::Drop),
    ]
}

proptest! {
    #[test]
    fn kept_bytes_are_fresh_bytes(steps in prop::collection::vec((step(), prop::collection::btree_set(0..12_usize, 0..3)), 1..60)) {
        let cache = HistoryCache::default();
        let mut sessions: Vec<Vec<Arc<Message>>> = vec![Vec::new(); 4];
        for (step, marked) in steps {
            let touched = match step {
                Step::Push(s, n) => { sessions[s].push(Arc::new(Message::user(n.to_string()))); s }
                Step::Fork(a, b) => { sessions[b] = sessions[a].clone(); b }
                Step::Cut(s, n) => { sessions[s].truncate(n); s }
                Step::Replace(s, n) => {
                    if let Some(message) = sessions[s].get_mut(n) { *message = Arc::new(Message::user(format!("r{n}"))) }
                    s
                }
                Step::Drop(s) => { sessions[s].clear(); s }
            };
            let marked: Vec<usize> = marked.into_iter().collect();
            let got = cache.encode(&Looking, &sessions[touched], &marked).concat();
            prop_assert_eq!(String::from_utf8(got).unwrap(), String::from_utf8(fresh(&sessions[touched], &marked)).unwrap());
        }
    }
}

/// Counts what is encoded.
struct Counting(std::cell::Cell<usize>);

impl EncodeMessage for Counting {
    fn encode(&self, _: &[Arc<Message>], _: usize, _: bool, out: &mut Vec<u8>) {
        self.0.set(self.0.get() + 1);
        out.push(b',');
    }
}

#[test]
fn a_step_encodes_only_what_is_new_also_after_a_fork() {
    let cache = HistoryCache::default();
    let counting = Counting(0.into());
    let mut session: Vec<Arc<Message>> = Vec::new();
    for n in 1..=100 {
        session.push(Arc::new(Message::user("a")));
        cache.encode(&counting, &session, &[]);
        assert_eq!(counting.0.get(), n);
    }
    let mut fork = session[..50].to_vec();
    fork.push(Arc::new(Message::user("b")));
    cache.encode(&counting, &fork, &[]);
    session.push(Arc::new(Message::user("c")));
    cache.encode(&counting, &session, &[]);
    assert_eq!(counting.0.get(), 102);
}

#[test]
fn histories_of_sessions_that_are_gone_are_let_go() {
    let cache = HistoryCache::default();
    for _ in 0..5 {
        let session = [Arc::new(Message::user("a"))];
        cache.encode(&Looking, &session, &[]);
    }
    let live = [Arc::new(Message::user("a"))];
    cache.encode(&Looking, &live, &[]);
    assert_eq!(cache.0.lock().unwrap().len(), 1);
    let many: Vec<_> = (0..50).map(|n| Arc::new(Message::user(n.to_string()))).collect();
    for message in &many {
        cache.encode(&Looking, std::slice::from_ref(message), &[]);
    }
    assert_eq!(cache.0.lock().unwrap().len(), MAX_HISTORIES);
}

#[test]
fn a_pinned_source_is_encoded_once_for_each_allocation() {
    let pinned = Pinned::<str>::default();
    let (a, b): (Arc<str>, Arc<str>) = ("x".into(), "x".into());
    let count = std::cell::Cell::new(0);
    let encode = || {
        count.set(count.get() + 1);
        vec![1]
    };
    for source in [&a, &a, &b, &a, &b] {
        assert_eq!(pinned.get(source, encode), vec![1]);
    }
    assert_eq!(count.get(), 2);
}
