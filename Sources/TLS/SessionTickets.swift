internal import CBroadsideOpenSSL
internal import Synchronization

/// The newest TLS 1.3 ticket that one of a context's sessions was given, for those that come after: who
/// resumes (RFC 8446 section 2.2) has no certificate to verify, which is most of a handshake's CPU.
///
/// A ticket stands for a certificate that was verified before. After `trustLimit` the next session verifies
/// it again. If a session with a ticket ends before the server says anything in it, however it ends, none
/// is offered any more: it may be the ticket that a server or a proxy takes offence at.
final class SessionTickets: Sendable {
    /// A session's ticket and secrets: they stay in memory, and nothing prints them.
    @safe final class Ticket: Sendable {
        // SAFETY: an SSL_SESSION to which this object has a reference, given back in `deinit`. Nothing
        // changes it: sessions are made from copies.
        fileprivate nonisolated(unsafe) let pointer: OpaquePointer
        let serverName: ServerName
        /// When the certificate was verified on which it rests.
        let verified: ContinuousClock.Instant

        init(
            owning pointer: OpaquePointer, _ serverName: ServerName,
            verified: ContinuousClock.Instant
        ) {
            // SAFETY: the caller hands over its reference.
            unsafe self.pointer = pointer
            self.serverName = serverName
            self.verified = verified
        }

        // SAFETY: the reference is this object's.
        deinit { unsafe SSL_SESSION_free(pointer) }
    }

    private struct State {
        var ticket: Ticket?
        var isRefused = false
    }

    private let state = Mutex(State())

    /// So long the verification of a certificate counts.
    static let trustLimit = Duration.seconds(600)

    /// Has a context's sessions keep their tickets.
    static func install(_ context: OpaquePointer) {
        // SAFETY: the context is the caller's, and has no sessions yet. OpenSSL calls back while it reads
        // for a session of `TLSSession`, whose transfer nobody else reaches meanwhile. 0 says that no
        // reference is kept.
        unsafe openssl_keep_sessions(context)
        unsafe SSL_CTX_sess_set_new_cb(context) { session, ticket in
            guard let session = unsafe session, let ticket = unsafe ticket else { return 0 }
            let transfer = unsafe SharedTransfer(of: session).value
            let isResumed = unsafe SSL_session_reused(session) == 1
            let verified = isResumed ? transfer.verifiedBefore : transfer.verified
            guard let tickets = transfer.tickets, let serverName = transfer.serverName,
                let verified, unsafe SSL_version(session) == TLS1_3_VERSION
            else { return 0 }
            unsafe tickets.keep(ticket, serverName, verified: verified)
            return 0
        }
    }

    /// Keeps a copy of a new ticket.
    ///
    /// - Parameter verified: When the certificate was verified on which its session rests, which may be
    ///   long before the ticket comes.
    private func keep(
        _ ticket: OpaquePointer, _ serverName: ServerName, verified: ContinuousClock.Instant
    ) {
        // SAFETY: OpenSSL lends the ticket, and the copy is the new object's. A session that ends without
        // a goodbye spoils its own ticket, not a copy.
        guard let copy = unsafe SSL_SESSION_dup(ticket) else {
            ErrorQueue.clear()
            return
        }
        let ticket = unsafe Ticket(owning: copy, serverName, verified: verified)
        state.withLock {
            // Of several sessions the one counts whose certificate was verified last.
            guard !$0.isRefused, verified >= $0.ticket?.verified ?? verified else { return }
            $0.ticket = ticket
        }
    }

    /// When the certificate was verified on which the ticket rests; nil where there is none.
    var verified: ContinuousClock.Instant? { state.withLock { $0.ticket?.verified } }

    /// The ticket that a session with a server of this name may offer.
    func ticket(
        for serverName: ServerName, at now: ContinuousClock.Instant = .now
    ) -> Ticket? {
        state.withLock {
            guard let ticket = $0.ticket, now - ticket.verified < Self.trustLimit,
                ticket.serverName == serverName
            else { return nil }
            return ticket
        }
    }

    /// Has a session that did not begin yet offer the ticket.
    ///
    /// - Returns: When the certificate was verified on which the ticket rests; nil if none is offered.
    func offer(
        to session: OpaquePointer, _ serverName: ServerName
    ) -> ContinuousClock.Instant? {
        guard let held = ticket(for: serverName) else { return nil }
        // SAFETY: `held` keeps the ticket during the calls. The session gets a copy of its own, as
        // sessions of other threads are made from the same ticket; SSL_set_session adds its reference.
        guard let copy = unsafe SSL_SESSION_dup(held.pointer) else {
            ErrorQueue.clear()
            return nil
        }
        defer { unsafe SSL_SESSION_free(copy) }
        guard unsafe SSL_set_session(session, copy) == 1 else {
            ErrorQueue.clear()
            return nil
        }
        return held.verified
    }

    /// A session with a ticket came to nothing.
    func refuse() {
        state.withLock {
            $0.isRefused = true
            $0.ticket = nil
        }
    }
}
