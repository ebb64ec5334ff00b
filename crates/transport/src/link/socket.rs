//! System calls on sockets, and the meaning of the errors. No call waits.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, sendmsg,
};
use rustix::process::Resource;

use crate::error::LinkError;
use titin_os::Descriptor;

/// The most slices of one call.
const MAX_SLICES: usize = 64;

/// Writes as much as one call takes, with a descriptor if given, without blocking and without a
/// signal; 0 if the socket is full.
pub(super) fn write(
    socket: &OwnedFd,
    slices: &[IoSlice<'_>],
    file: Option<BorrowedFd<'_>>,
) -> Result<usize, LinkError> {
    let slices = &slices[..slices.len().min(MAX_SLICES)];
    let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
    }
    loop {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(socket, slices, &mut ancillary, flags) {
            Ok(count) => return Ok(count),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(0),
            Err(error) if is_of_link(error) => return Err(error.into()),
            Err(Errno::NOMEM | Errno::NOBUFS) => {
                let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
                return Err(LinkError::NoMemory(format!(
                    "the system has no memory to send {bytes} bytes"
                )));
            }
            Err(Errno::FAULT) => {
                let text = "the memory that is to be sent cannot be read (a mapped file that was cut short?)";
                return Err(LinkError::Untaken(format!(
                    "{text}: {}",
                    std::io::Error::from(Errno::FAULT)
                )));
            }
            Err(error) => return Err(LinkError::Untaken(std::io::Error::from(error).to_string())),
        }
    }
}

/// Whether an error means the end of the connection.
fn is_of_link(error: Errno) -> bool {
    matches!(
        error,
        Errno::PIPE
            | Errno::CONNRESET
            | Errno::CONNABORTED
            | Errno::NOTCONN
            | Errno::TIMEDOUT
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::NETDOWN
            | Errno::NETRESET
    )
}

/// The most descriptors that come at once, or wait for their frames.
const FILES: usize = 4;

/// As [`read`], and also takes the descriptors sent with the bytes.
pub(crate) fn read_with_files(
    socket: &Descriptor,
    slices: &mut [IoSliceMut<'_>],
    files: &mut VecDeque<OwnedFd>,
) -> Result<usize, LinkError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    loop {
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let (count, flags) =
            match rustix::net::recvmsg(socket, slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Ok(received) if received.bytes == 0 => return Err(LinkError::Closed),
                Ok(received) => (received.bytes, received.flags),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(0),
                Err(error) => return Err(error.into()),
            };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(came) = message {
                files.extend(came);
            }
        }
        // The system drops descriptors for which the process has no numbers, and descriptors beyond
        // `space`.
        if flags.contains(ReturnFlags::CTRUNC)
            && let Err(why) = rustix::io::fcntl_dupfd_cloexec(socket, 0)
        {
            return Err(no_files(why));
        }
        if files.len() > FILES || flags.contains(ReturnFlags::CTRUNC) {
            return Err(
                titin_wire::Malformed::new("descriptors", "more than anything announces").into(),
            );
        }
        return Ok(count);
    }
}

/// The error when the process cannot take over the descriptor of shared memory.
fn no_files(why: Errno) -> LinkError {
    let most = rustix::process::getrlimit(Resource::Nofile).current;
    let most = most.map_or_else(String::new, |most| format!(", of which it may have {most}"));
    LinkError::NoMemory(format!(
        "the memory of a message cannot be taken over from the program that shares it: {why}. This program has too many \
         open files{most}: close some, or raise the limit, with `ulimit -n` for instance"
    ))
}

/// Whether the other end has closed a connection, and all bytes have been read.
pub(super) fn has_ended(socket: &Descriptor) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    !matches!(
        rustix::net::recv(socket, &mut [0u8], flags),
        Ok((1.., _)) | Err(Errno::AGAIN | Errno::INTR)
    )
}

/// Reads without blocking; 0 if no bytes are there.
pub(crate) fn read(socket: &Descriptor, slices: &mut [IoSliceMut<'_>]) -> Result<usize, LinkError> {
    loop {
        match rustix::io::readv(socket, slices) {
            Ok(0) => return Err(LinkError::Closed),
            Ok(count) => return Ok(count),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
    }
}
