//! Where a streamed body is cut into chunks.

/// Where a streamed body is cut into HTTP chunks. A client must read the same whatever it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// One chunk per server-sent event.
    #[default]
    Event,
    /// Chunks of so many bytes, across events; 0 counts as 1.
    Bytes(usize),
    /// Two chunks, cut after so many bytes of the body.
    SplitAt(usize),
    /// As few chunks as possible: one up to each pause.
    Whole,
}

/// Applies a [`Framing`] to a body that arrives piece by piece.
pub(super) struct Framer {
    framing: Framing,
    held: Vec<u8>,
    sent: usize,
}

impl Framer {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, held: Vec::new(), sent: 0 }
    }

    pub(super) fn framing(&self) -> Framing {
        self.framing
    }

    /// Takes bytes of the body and puts complete chunks out.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.held.extend(bytes);
        match self.framing {
            Framing::Event => self.finish(out),
            Framing::Bytes(size) => {
                let size = size.max(1);
                while self.held.len() >= size {
                    self.chunk(size, out);
                }
            }
            Framing::SplitAt(at) => {
                if let Some(rest) = at.checked_sub(self.sent).filter(|rest| *rest > 0 && *rest <= self.held.len()) {
                    self.chunk(rest, out);
                }
            }
            Framing::Whole => {}
        }
    }

    /// Puts out what is held back.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.chunk(self.held.len(), out);
    }

    fn chunk(&mut self, size: usize, out: &mut Vec<u8>) {
        if size == 0 {
            return;
        }
        out.extend(format!("{size:x}\r\n").into_bytes());
        out.extend(self.held.drain(..size));
        out.extend(b"\r\n");
        self.sent += size;
    }
}
