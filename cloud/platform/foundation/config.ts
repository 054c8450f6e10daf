import type { KeepDays } from './keep-days.ts'
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

/** Settings of a cloud. bin/ reads and validates options and environment; see docs/reference/configuration.md. */
export interface CloudConfig {
  /** Address of the API root as clients and QR codes use it, such as `https://shop.example/api/v1`. */
  readonly baseUrl: string
  /** True if this process serves HTTPS itself, without a proxy. Default: false. */
  readonly servesTls?: boolean
  /** Address of the MQTT broker as agents reach it. */
  readonly mqttUrl: string
  /** Set if `mqttUrl` is an outside broker, where agents log in with passwords. `ca`: certificates of a private CA. */
  readonly outsideBroker?: { readonly ca?: string; readonly logins?: BrokerLogins }
  /** Requests per second of one key; 0: no limit. The burst is twice this number. */
  readonly rateLimit: number
  /** Requests per second of one publishable key and client address. */
  readonly publishableRateLimit: number
  /** Validates each response against its schema. For tests only. */
  readonly checkAnswers: boolean
  /** Allows requests to private, loopback and other closed addresses: for tests and demonstrations. */
  readonly allowPrivateTargets: boolean
  /** The cloud raises an exception about an agent or device that does not work for this time; absent: never. */
  readonly silentAfterMs?: number
  /** How long each kind of data is kept; absent: the defaults of keep-days.ts. */
  readonly keepDays?: KeepDays
  /** Sign-in to the console with an OpenID Connect provider; absent: by password only. */
  readonly openId?: OpenIdConfig
  /** Contact for security reports, `mailto:` or `https:`; absent: no security.txt. */
  readonly securityContact?: string
  /** Addresses of proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[]
}

/** Set if the broker checks each login by an HTTP request to the cloud. */
export interface BrokerLogins {
  /** The broker sends this secret in each request. */
  readonly secret: string
  /** Login of the cloud itself. */
  readonly cloud?: { readonly username: string; readonly password: string }
}

/** The OpenID Connect provider of the installation. */
export interface OpenIdConfig {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** Name on the button of the sign-in page. */
  readonly name: string
  /** Domains of the e-mail addresses that may sign in; empty: all. */
  readonly domains: readonly string[]
}

/** Scheme, host and port of the public address. */
export function originOf(config: CloudConfig): string {
  return new URL(config.baseUrl).origin
}
