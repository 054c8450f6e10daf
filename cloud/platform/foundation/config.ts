import type { SecureContextOptions, Server } from 'node:tls'

/**
 * How long each kind of data is kept, days. `--keep-days` changes the numbers; docs/guides/data-protection.md gives the
 * reasons and sources of the defaults.
 */
const KEPT_KINDS = {
  /** Purchases with receipts, payments and refunds; pick-up orders. § 147 (3) AO: vouchers, 8 years. */
  purchases: { days: 2_922, min: 30, max: 36_500, isFromYearEnd: true },
  /** Day closings. § 147 (3) AO: books and records, 10 years. */
  closings: { days: 3_653, min: 30, max: 36_500, isFromYearEnd: true },
  /** Audit log. It documents the settings of the shop: 10 years, as for records. */
  audit: { days: 3_653, min: 30, max: 36_500, isFromYearEnd: true },
  /** Link between a customer and purchases, sessions, loyalty, follows. § 195 BGB: claims end after 3 years. */
  customers: { days: 1_096, min: 30, max: 36_500, isFromYearEnd: false },
  /** Releases, alarms, status changes of items, and reports of agents. They name operators. */
  protection: { days: 365, min: 30, max: 36_500, isFromYearEnd: false },
  /** Push subscriptions that were not registered again. */
  push: { days: 365, min: 1, max: 36_500, isFromYearEnd: false },
  /** Events and webhook deliveries with the answers of the receivers. */
  events: { days: 30, min: 1, max: 365, isFromYearEnd: false },
  /** Requests for staff with their messages. */
  chats: { days: 30, min: 1, max: 365, isFromYearEnd: false },
  /** Sealed ids of erased customers, for restored backups. Not shorter than the age of the oldest backup. */
  backups: { days: 365, min: 30, max: 36_500, isFromYearEnd: false },
  /** Acknowledged rows in the ledgers of agents. A restored cloud gets them again. */
  ledger: { days: 14, min: 1, max: 14, isFromYearEnd: false },
} as const

export type KeptKind = keyof typeof KEPT_KINDS
export type KeepDays = Readonly<Partial<Record<KeptKind, number>>>

const DAY_MS = 86_400_000

/** Days for which this kind is kept. */
export function daysOf(keepDays: KeepDays | undefined, kind: KeptKind): number {
  return keepDays?.[kind] ?? KEPT_KINDS[kind].days
}

/**
 * Data of this kind from before this time (ms) is deleted. Periods of bookkeeping begin at the end of the calendar year
 * (§ 147 (4) AO). One more day covers the time zones.
 */
export function deletedBeforeMs(keepDays: KeepDays | undefined, kind: KeptKind, nowMs: number): number {
  const beforeMs = nowMs - daysOf(keepDays, kind) * DAY_MS
  if (!KEPT_KINDS[kind].isFromYearEnd) return beforeMs
  return Date.UTC(new Date(beforeMs).getUTCFullYear(), 0, 1) - DAY_MS
}

/** Parses `purchases=2922,chats=14`. In an error message the text of a fault follows the name of the setting. */
export function parseKeepDays(text: string): { value: KeepDays } | { fault: string } {
  const value: Partial<Record<KeptKind, number>> = {}
  for (const part of text.split(',')) {
    const [kind = '', days = ''] = part.split('=').map((word) => word.trim())
    if (!isKeptKind(kind)) return { fault: `does not know "${kind}": use ${Object.keys(KEPT_KINDS).join(', ')}` }
    const { min, max } = KEPT_KINDS[kind]
    const number = /^\d{1,5}$/.test(days) ? Number(days) : Number.NaN
    if (!(number >= min && number <= max))
      return { fault: `needs a whole number of days from ${min} to ${max} for ${kind}, not "${days}"` }
    value[kind] = number
  }
  return { value }
}

function isKeptKind(text: string): text is KeptKind {
  return Object.hasOwn(KEPT_KINDS, text)
}

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
  /** How long each kind of data is kept; absent: the defaults of `KEPT_KINDS`. */
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
