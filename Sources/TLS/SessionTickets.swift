internal import CBroadsideOpenSSL
internal import Synchronization

/// The newest TLS 1.3 ticket issued to any of a context's sessions. Later sessions use it. A
/// resumed session (RFC 8446 section 2.2) verifies no certificate, which saves most of a
/// handshake's CPU time.
///
/// A ticket represents an earlier verification of the certificate. After `trustLimit`, the next
/// session verifies it again. A server or proxy may reject all tickets. So if a session that
/// offered a ticket ends before the server sends anything, no further tickets are offered.
final class SessionTickets: Sendable {
    /// A session's ticket and secrets, which stay in memory and are never printed.
    @safe final class Ticket: Sendable {
        // SAFETY: an SSL_SESSION to which this object holds a reference, released in `deinit`. It
        // is never modified: sessions are created from copies.
        fileprivate nonisolated(unsafe) let pointer: OpaquePointer
        let serverName: ServerName
        /// Time of the certificate verification on which the ticket is based.
        let verified: ContinuousClock.Instant

        init(
            owning pointer: OpaquePointer, _ serverName: ServerName,
            verified: ContinuousClock.Instant
        ) {
            // SAFETY: the caller transfers its reference.
            unsafe self.pointer = pointer
            self.serverName = serverName
            self.verified = verified
        }

        // SAFETY: the reference belongs to this object.
        deinit { unsafe SSL_SESSION_free(pointer) }
    }

    private struct State {
        var ticket: Ticket?
        var isRefused = false
    }

    private let state = Mutex(State())

    /// Time after which a session must verify the server's certificate again.
    static let trustLimit = Duration.seconds(600)

    /// Makes the sessions of a context keep the tickets that they get.
    static func install(_ context: OpaquePointer) {
        // SAFETY: the context belongs to the caller and has no sessions yet. OpenSSL calls back
        // while it reads for a session of `TLSSession`, whose transfer has no other access in
        // progress. The result 0 means that no reference is kept.
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
    /// - Parameter verified: Time of the certificate verification on which the session is based,
    ///   which may be long before the ticket arrives.
    private func keep(
        _ ticket: OpaquePointer, _ serverName: ServerName, verified: ContinuousClock.Instant
    ) {
        // SAFETY: OpenSSL lends the ticket, and the copy belongs to the new object. A session that
        // ends without close_notify invalidates its own ticket, but not a copy.
        guard let copy = unsafe SSL_SESSION_dup(ticket) else {
            ErrorQueue.clear()
            return
        }
        assert(verified <= .now, "a ticket comes after the certificate of its session")
        let ticket = unsafe Ticket(owning: copy, serverName, verified: verified)
        state.withLock {
            // Among several sessions, the one with the latest certificate verification takes
            // precedence.
            guard !$0.isRefused, verified >= $0.ticket?.verified ?? verified else { return }
            $0.ticket = ticket
        }
    }

    /// Time of the certificate verification on which the ticket is based; nil if there is no
    /// ticket.
    var verified: ContinuousClock.Instant? { state.withLock { $0.ticket?.verified } }

    /// Returns the ticket that a session with a server of this name may offer.
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

    /// Adds the ticket to a session that has not started. The session then offers the ticket.
    ///
    /// - Returns: Time of the certificate verification on which the ticket is based; nil if the
    ///   session offers no ticket.
    func offer(
        to session: OpaquePointer, _ serverName: ServerName
    ) -> ContinuousClock.Instant? {
        guard let held = ticket(for: serverName) else { return nil }
        // SAFETY: `held` keeps the ticket alive during the calls. The session gets its own copy,
        // because sessions of other threads are created from the same ticket; SSL_set_session adds
        // its own reference.
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

    /// Disables tickets. Called if a session offered a ticket and failed.
    func refuse() {
        state.withLock {
            $0.isRefused = true
            $0.ticket = nil
        }
    }
}
