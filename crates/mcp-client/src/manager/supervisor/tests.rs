//! The driver with servers that are scripts, and time that jumps.

mod world;

use std::sync::atomic::Ordering;

use tokio::time::sleep;

use super::*;
use world::{Bench, FAILS, READY, Script, ms};

#[tokio::test(start_paused = true)]
async fn nothing_starts_before_it_is_asked_for_and_then_it_is_kept() {
    let mut bench = Bench::new();
    bench.want(&[("a", 1, READY), ("b", 1, READY)]);
    sleep(ms(1000)).await;
    assert_eq!((bench.world.log(), bench.state("a")), (String::new(), "absent".into()));
    bench.ensure().await;
    assert_eq!((bench.state("a"), bench.state("b")), ("running".into(), "running".into()));
    bench.ensure().await;
    bench.want(&[("a", 1, READY), ("b", 1, READY)]);
    bench.ensure().await;
    assert_eq!(bench.world.log(), "start:a start:b");
    assert_eq!(bench.events(), "starting:a starting:b ready:a ready:b");
}

#[tokio::test(start_paused = true)]
async fn starts_run_in_parallel_up_to_the_bound() {
    let bench = Bench::new();
    let servers: Vec<_> = ["a", "b", "c", "d", "e"].map(|server| (server, 1, READY)).into();
    bench.want(&servers);
    let began = tokio::time::Instant::now();
    bench.ensure().await;
    assert_eq!(bench.world.most_starting.load(Ordering::SeqCst), 2);
    assert_eq!(began.elapsed(), ms(300), "five starts of 100 ms, two at a time");
    assert_eq!(bench.world.alive(), 5);
}

#[tokio::test(start_paused = true)]
async fn one_failure_spoils_nothing_is_told_once_and_is_not_tried_again() {
    let mut bench = Bench::new();
    bench.want(&[("bad", 1, FAILS), ("good", 1, READY)]);
    bench.ensure().await;
    assert_eq!(bench.state("bad"), "failed: bad has no luck");
    assert_eq!(bench.state("good"), "running");
    assert_eq!(bench.supervisor.take_new_failures(), [Arc::from("bad")]);
    for _ in 0..3 {
        bench.clock.forward(Duration::from_secs(3600));
        bench.ensure().await;
        assert_eq!(bench.supervisor.take_new_failures(), []);
    }
    assert_eq!(bench.world.log(), "start:bad start:good");
    // Another configuration is tried, and its failure told.
    bench.want(&[("bad", 2, FAILS), ("good", 1, READY)]);
    bench.ensure().await;
    assert_eq!(bench.supervisor.take_new_failures(), [Arc::from("bad")]);
    // So is the same one after a reset.
    bench.supervisor.reset();
    bench.ensure().await;
    assert_eq!(bench.supervisor.take_new_failures(), [Arc::from("bad")]);
    assert_eq!(bench.world.log(), "start:bad start:bad closed:good start:good");
    assert!(bench.events().contains("failed:bad"));
}

#[tokio::test(start_paused = true)]
async fn a_changed_configuration_restarts_exactly_that_server_after_its_end() {
    let mut bench = Bench::new();
    bench.want(&[("a", 1, READY), ("b", 1, READY)]);
    bench.ensure().await;
    bench.world.log();
    bench.events();
    bench.want(&[("a", 2, READY), ("b", 1, READY)]);
    assert_eq!(bench.state("a"), "running", "wanting alone changes nothing");
    bench.ensure().await;
    assert_eq!(bench.world.log(), "closed:a start:a");
    assert_eq!(bench.events(), "stopped:a starting:a ready:a");
    assert_eq!(bench.world.alive(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_no_longer_wanted_is_ended_and_may_come_back() {
    let bench = Bench::new();
    bench.want(&[("a", 1, READY), ("b", 1, READY)]);
    bench.ensure().await;
    bench.world.log();
    bench.want(&[("b", 1, READY)]);
    bench.ensure().await;
    assert_eq!(bench.state("a"), "absent");
    // It comes back while it is still being ended: the new one waits for the old one's end.
    bench.want(&[("a", 1, READY), ("b", 1, READY)]);
    bench.ensure().await;
    assert_eq!(bench.world.log(), "closed:a start:a");
    assert_eq!(bench.world.alive(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_exits_is_started_again_and_one_in_a_crash_loop_later_and_later() {
    let mut bench = Bench::new();
    bench.want(&[("a", 1, READY)]);
    bench.ensure().await;
    bench.events();
    // The first restart is at once, even if nobody had time to notice the exit.
    bench.world.crash("a");
    bench.ensure().await;
    assert_eq!(bench.state("a"), "running");
    assert_eq!(bench.events(), "exited:a starting:a ready:a");
    for pause in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        bench.world.crash("a");
        bench.ensure().await;
        assert_eq!(bench.state("a"), format!("exited: exit 1, in {pause}"));
        bench.clock.forward(Duration::from_secs(pause - 1));
        bench.ensure().await;
        assert_eq!(bench.state("a"), "exited: exit 1, in 1");
        bench.clock.forward(Duration::from_secs(1));
        bench.ensure().await;
        assert_eq!(bench.state("a"), "running");
    }
    // It settled: the next exit counts as the first.
    bench.clock.forward(Duration::from_secs(60));
    bench.world.crash("a");
    bench.ensure().await;
    assert_eq!(bench.state("a"), "running");
    // And a reset forgets.
    bench.world.crash("a");
    bench.ensure().await;
    assert_eq!(bench.state("a"), "exited: exit 1, in 1");
    bench.supervisor.reset();
    bench.ensure().await;
    assert_eq!(bench.state("a"), "running");
}

#[tokio::test(start_paused = true)]
async fn giving_up_the_wait_does_not_give_up_the_start() {
    let bench = Bench::new();
    bench.want(&[("a", 1, READY)]);
    let waited = tokio::time::timeout(ms(10), bench.ensure()).await;
    assert!(waited.is_err());
    assert_eq!(bench.state("a"), "starting");
    bench.ensure().await;
    assert_eq!((bench.state("a"), bench.world.log()), ("running".into(), "start:a".into()));
}

#[tokio::test(start_paused = true)]
async fn two_that_ask_at_once_start_one() {
    let bench = Bench::new();
    bench.want(&[("a", 1, READY), ("b", 1, READY)]);
    tokio::join!(bench.ensure(), bench.ensure(), bench.supervisor.ensure(|server| server == "a"));
    assert_eq!(bench.world.log(), "start:a start:b");
}

#[tokio::test(start_paused = true)]
async fn one_server_can_be_asked_for_alone() {
    let bench = Bench::new();
    bench.want(&[("a", 1, READY), ("b", 1, Script::Ready { after: Duration::from_secs(3600) })]);
    bench.supervisor.ensure(|server| server == "a").await;
    assert_eq!((bench.state("a"), bench.state("b")), ("running".into(), "absent".into()));
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_overtaken_leaves_no_process() {
    let bench = Bench::new();
    bench.want(&[("a", 1, Script::Ready { after: Duration::from_secs(3600) })]);
    assert!(tokio::time::timeout(ms(10), bench.ensure()).await.is_err());
    assert_eq!(bench.world.alive(), 1);
    bench.want(&[("a", 2, READY)]);
    bench.ensure().await;
    assert_eq!((bench.state("a"), bench.world.alive()), ("running".into(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_start_that_panics_is_a_failure_and_nobody_waits_for_ever() {
    let bench = Bench::new();
    bench.want(&[("a", 1, Script::Panics), ("b", 1, READY)]);
    bench.ensure().await;
    assert_eq!((bench.state("a"), bench.state("b")), ("failed: Abandoned".into(), "running".into()));
}

#[test]
fn outside_of_a_runtime_a_start_is_a_failure() {
    let bench = Bench::new();
    bench.want(&[("a", 1, READY)]);
    let mut ensuring = Box::pin(bench.ensure());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(ensuring.as_mut().poll(&mut context).is_ready());
    drop(ensuring);
    assert_eq!(bench.state("a"), "failed: NoRuntime");
}

#[tokio::test(start_paused = true)]
async fn closing_ends_everything_and_nothing_starts_afterwards() {
    let mut bench = Bench::new();
    bench.want(&[
        ("a", 1, READY),
        ("b", 1, READY),
        ("c", 1, Script::Ready { after: Duration::from_secs(3600) }),
    ]);
    assert!(tokio::time::timeout(ms(150), bench.ensure()).await.is_err());
    assert_eq!(bench.world.alive(), 3);
    bench.supervisor.close().await;
    assert_eq!(bench.world.alive(), 0);
    assert!(bench.events().ends_with("stopped:a stopped:b"));
    bench.ensure().await;
    assert_eq!((bench.state("a"), bench.world.alive()), ("absent".into(), 0));
    bench.supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_ends_running_servers_at_once_and_starting_ones_with_their_tasks() {
    let bench = Bench::new();
    bench.want(&[("a", 1, READY), ("b", 1, Script::Ready { after: Duration::from_secs(3600) })]);
    assert!(tokio::time::timeout(ms(150), bench.ensure()).await.is_err());
    let world = Arc::clone(&bench.world);
    assert_eq!(world.alive(), 2);
    drop(bench);
    assert_eq!(world.alive(), 1, "the running one is gone without a turn of the runtime");
    tokio::task::yield_now().await;
    assert_eq!(world.alive(), 0);
}

#[test]
fn a_runtime_that_goes_down_leaves_nothing_and_the_supervisor_says_so() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bench = Bench::new();
    bench.want(&[("a", 1, Script::Ready { after: ms(1) })]);
    runtime.block_on(bench.ensure());
    drop(runtime);
    assert_eq!(bench.state("a"), "exited: its task was given up, in 0");
    assert_eq!(bench.world.alive(), 0);
}
