//! Connections of TCP whose two ends are both in the process, as the runtime tells of them (its module `sockets`): each
//! direction is a channel, so is its end, and so is that a connection was made before it is accepted.

use super::{Channels, End, called};
use crate::engine::Engine;
use crate::naming::place_of;
use crate::thread::{Frame, PendingSync};
use model::Site;
use model::names::is_installed;
use trace_format::layout::{SocketUse, SyncOp};

impl Channels {
    /// Makes the channel of a direction, or of what else there is of a connection.
    pub(super) fn socket(&mut self, number: u64, name: &str, bytes: bool) {
        let channel = Some(self.add(name, bytes, 0));
        self.made(number, End { reads: channel, writes: channel });
    }
}

impl<'r> Engine<'r> {
    /// A thread did something with a connection; `result` is how many bytes it moved.
    pub fn use_socket(&mut self, t: usize, begun: &PendingSync, result: u64) {
        let size = u64::try_from(result as i64).unwrap_or(0);
        let Some(what) = SocketUse::from_code(begun.second).filter(|_| size > 0) else { return };
        let number = begun.address;
        if !self.symbolic() && !self.learned.channels.ends.contains_key(&number) {
            let name = called("connection", &self.site_of_program(t));
            let bytes = what == SocketUse::Bytes || what == SocketUse::Doubt;
            self.learned.channels.socket(number, &name, bytes);
        }
        if what == SocketUse::Doubt {
            self.doubt_descriptor(number);
            return;
        }
        let size = if what == SocketUse::Bytes { size } else { 1 };
        self.move_through(t, number, (begun.operation == SyncOp::SocketWrite, size), None);
    }

    /// A log ends where a connection was about to be written to: that may have been done, as far as others saw. The thread
    /// waits in the call, if it does.
    pub(super) fn end_in_socket(&mut self, t: usize) {
        let writes = |begun: &mut PendingSync| begun.operation == SyncOp::SocketWrite;
        if let Some(begun) = self.threads[t].pending_sync.pop_if(writes) {
            self.use_socket(t, &begun, begun.argument);
        }
    }

    /// The innermost place of a thread that is in no installed library, else the innermost one.
    pub(super) fn site_of_program(&mut self, t: usize) -> Site {
        let frames = self.threads[t].frames.iter().rev();
        let places: Vec<_> = frames
            .filter_map(|frame| match frame {
                Frame::Code(frame) => Some(place_of(frame)),
                Frame::External(_) => None,
            })
            .collect();
        for place in places {
            let chain = self.chain(place);
            if let Some(site) = chain.iter().find(|site| site.line > 0 && !is_installed(&site.file))
            {
                return site.clone();
            }
        }
        self.site_in_any_pass(t)
    }
}
