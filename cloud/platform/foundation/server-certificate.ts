import type { SecureContextOptions, Server } from 'node:tls'

/** State of the certificate with which this process serves TLS. */
export interface CertificateStatus {
  /** End of its validity, ms since 1970. */
  readonly expiresMs: number
  /** Why the latest files are not used. Absent: they are used. */
  readonly fault?: string
}

/** Certificate and key of the TLS servers of this process. They may change while the servers run. */
export interface ServerCertificate {
  /** Options of a new TLS server. */
  options(): SecureContextOptions
  /** Passes each new certificate to the server until the server closes. Open connections continue. */
  attach(server: Server): void
  status(): CertificateStatus
}
