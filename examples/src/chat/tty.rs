//! The terminal behind standard input and output: its width, its echo, and its state at the end.

/// The terminal as it was found, to be put back.
#[cfg(unix)]
pub struct Tty(rustix::termios::Termios);

#[cfg(unix)]
impl Tty {
    /// `None` where standard input is no terminal.
    pub fn found() -> Option<Self> {
        rustix::termios::tcgetattr(rustix::stdio::stdin()).ok().map(Self)
    }

    /// Whether what is typed is shown. Off while a turn runs: keys would be written into the text that streams.
    pub fn echo(&self, on: bool) {
        let mut wanted = self.0.clone();
        wanted.local_modes.set(rustix::termios::LocalModes::ECHO, on);
        self.set(&wanted);
    }

    /// Drops what was typed ahead: a question must not be answered by keys that were pressed before it was seen.
    pub fn forget_typed(&self) {
        // A terminal that cannot do this has nothing to forget.
        let _ = rustix::termios::tcflush(rustix::stdio::stdin(), rustix::termios::QueueSelector::IFlush);
    }

    /// Puts the terminal back, also after a line editor that was left in the middle of a line.
    pub fn restore(&self) {
        self.set(&self.0);
    }

    fn set(&self, wanted: &rustix::termios::Termios) {
        // A terminal that was closed needs no state.
        let _ =
            rustix::termios::tcsetattr(rustix::stdio::stdin(), rustix::termios::OptionalActions::Now, wanted);
    }
}

/// The columns of the terminal behind standard output.
#[cfg(unix)]
pub fn columns() -> Option<usize> {
    rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok().map(|size| usize::from(size.ws_col))
}

/// Elsewhere the terminal is left as it is, and the usual width is assumed.
#[cfg(not(unix))]
pub struct Tty;

#[cfg(not(unix))]
impl Tty {
    /// There is nothing to put back.
    pub fn found() -> Option<Self> {
        None
    }

    /// Does nothing.
    pub fn echo(&self, _: bool) {}

    /// Does nothing.
    pub fn forget_typed(&self) {}

    /// Does nothing.
    pub fn restore(&self) {}
}

/// Not known.
#[cfg(not(unix))]
pub fn columns() -> Option<usize> {
    None
}
