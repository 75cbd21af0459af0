//! A process together with all that it started.
//!
//! On Unix a server is the leader of a process group of its own, and signals go to the group: wrappers such as `npx`
//! leave the real server behind if only they are ended. On Windows it is in a job object that ends all of its
//! processes when it is closed.

#[cfg(unix)]
mod unix {
    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

    /// A process group.
    #[derive(Debug)]
    pub(crate) struct Group {
        leader: Option<Pid>,
    }

    impl Group {
        pub(crate) fn prepare(command: &mut tokio::process::Command) {
            command.process_group(0);
        }

        pub(crate) fn of(child: &tokio::process::Child) -> std::io::Result<Self> {
            let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            Ok(Self { leader })
        }

        /// Asks every process of the group to terminate.
        pub(crate) fn terminate(&self) {
            self.signal(Signal::TERM);
        }

        /// Ends every process of the group.
        pub(crate) fn kill(&self) {
            self.signal(Signal::KILL);
        }

        /// Whether there is any process left in the group.
        pub(crate) fn is_alive(&self) -> bool {
            self.leader.is_some_and(|leader| test_kill_process_group(leader).is_ok())
        }

        fn signal(&self, signal: Signal) {
            if let Some(leader) = self.leader {
                // It fails if there is nobody left, which is what is wanted.
                let _ = kill_process_group(leader, signal);
            }
        }
    }
}

#[cfg(unix)]
pub(crate) use unix::Group;

#[cfg(windows)]
mod windows {
    use win32job::{ExtendedLimitInfo, Job};

    /// A job object: closing it ends every process in it.
    #[derive(Debug)]
    pub(crate) struct Group {
        job: std::sync::Mutex<Option<Job>>,
    }

    impl Group {
        pub(crate) fn prepare(command: &mut tokio::process::Command) {
            /// No console window is shown.
            const CREATE_NO_WINDOW: u32 = 0x0800_0000;
            command.creation_flags(CREATE_NO_WINDOW);
        }

        pub(crate) fn of(child: &tokio::process::Child) -> std::io::Result<Self> {
            let mut limits = ExtendedLimitInfo::new();
            limits.limit_kill_on_job_close();
            let job = Job::create_with_limit_info(&limits).map_err(std::io::Error::other)?;
            if let Some(handle) = child.raw_handle() {
                job.assign_process(handle as isize).map_err(std::io::Error::other)?;
            }
            Ok(Self { job: std::sync::Mutex::new(Some(job)) })
        }

        /// There is no signal that asks to terminate; closing standard input was the request.
        pub(crate) fn terminate(&self) {
            self.kill();
        }

        pub(crate) fn kill(&self) {
            drop(self.job.lock().ok().and_then(|mut job| job.take()));
        }

        pub(crate) fn is_alive(&self) -> bool {
            false
        }
    }
}

#[cfg(windows)]
pub(crate) use windows::Group;
