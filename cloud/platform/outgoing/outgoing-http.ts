import { BlockList, isIP } from 'node:net'

/** One request to a merchant's system. host/outgoing-http.ts implements the network. */
export interface OutgoingRequest {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Binary body, instead of `body`. */
  readonly bytes?: Uint8Array
  /** Maximum number of bytes of the response. Longer responses are cut. */
  readonly answerLimit: number
  readonly rules: TargetRules
}

export interface OutgoingAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** True if the response exceeded the size or time limit. */
  readonly isCut: boolean
}

/** Causes of a request without a response; docs/reference/errors.md explains them. */
const OUTGOING_FAULTS = [
  'address_refused',
  'name_not_found',
  'connection_refused',
  'connection_reset',
  'tls_failed',
  'timeout',
  'not_http',
  'connection_failed',
] as const
export type OutgoingFaultCode = (typeof OUTGOING_FAULTS)[number]

/** The request got no response; `code` is the cause. */
export class OutgoingFault extends Error {
  override name = 'OutgoingFault'
  readonly code: OutgoingFaultCode
  constructor(code: OutgoingFaultCode, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Sends requests to addresses that merchants configured. It follows no redirects, connects only to the checked address,
 * and uses each connection for one request.
 */
export interface OutgoingHttp {
  /** Resolves with the response after the body ended or was cut; rejects with an `OutgoingFault`. */
  send(request: OutgoingRequest, signal: AbortSignal): Promise<OutgoingAnswer>
}

/**
 * Rules for targets that the cloud may send to for a merchant (webhooks, POS, ERP, PSP). Addresses of private networks
 * are not allowed. `checkTarget` checks the URL at its registration and before each attempt. `checkAddress` checks the
 * resolved address before each connection.
 */
export interface TargetRules {
  /** Allows `http:`, in test mode. */
  readonly plainHttp: boolean
  /** Allows private and loopback addresses and any port. For tests, demonstrations and shops with their own network. */
  readonly privateTargets: boolean
}

interface Refusal {
  readonly refusal: string
  /** The address is refused only because it is not public: `privateTargets` allows it. */
  readonly isPrivate?: true
}

const URL_LIMIT = 2_048
/**
 * Ports of other services (mail, shells, printers …) that could misread an HTTP request as a command. Source: "port
 * blocking" of the Fetch standard.
 */
const BAD_PORTS: ReadonlySet<number> = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
])

/** IPv4: special-purpose addresses (IANA registry), multicast and reserved. */
const CLOSED_V4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Services of a cloud provider for its own machines: all with link-local addresses, and one of Azure.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const

/**
 * IPv6: only global unicast is open. ::1, mapped IPv4, NAT64, unique local, link-local and multicast are outside of it.
 * In global unicast, IETF assignments with Teredo, documentation and 6to4 are closed.
 */
const OPEN_V6 = [['2000::', 3]] as const
const CLOSED_V6 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const

const closedV4 = listOf(CLOSED_V4, 'ipv4')
const openV6 = listOf(OPEN_V6, 'ipv6')
const closedV6 = listOf(CLOSED_V6, 'ipv6')

/** Host names of this machine or of private networks. */
const CLOSED_NAMES =
  /(?:^|\.)(?:localhost|localdomain|local|internal|intranet|lan|home|corp|private|home\.arpa|arpa|onion)$/

function listOf(subnets: readonly (readonly [string, number])[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const [net, prefix] of subnets) list.addSubnet(net, prefix, family)
  return list
}

/** Returns why this IP address is closed; undefined if the address is open. */
export function checkAddress(
  address: string,
  { privateTargets }: Pick<TargetRules, 'privateTargets'>,
): Refusal | undefined {
  const plain = address.split('%')[0] ?? ''
  const family = isIP(plain)
  if (family === 0) return { refusal: 'it is not an IP address' }
  if (privateTargets) return undefined
  const isOpen =
    family === 4 ? !closedV4.check(plain, 'ipv4') : openV6.check(plain, 'ipv6') && !closedV6.check(plain, 'ipv6')
  return isOpen
    ? undefined
    : { refusal: 'it leads to a private, loopback, link-local or reserved address', isPrivate: true }
}

/**
 * Checks a URL without resolving its name. The URL parser normalizes all spellings of IPv4 addresses (octal,
 * hexadecimal, one number, full-width digits).
 */
export function checkTarget(text: string, rules: TargetRules): { url: URL } | Refusal {
  if (text.length > URL_LIMIT) return { refusal: `it is longer than ${URL_LIMIT} characters` }
  if (!URL.canParse(text)) return { refusal: 'it is not a URL' }
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return { refusal: 'only https: is allowed' }
  if (url.protocol === 'http:' && !rules.plainHttp)
    return { refusal: 'only https: is allowed; http: works in test mode' }
  if (url.username !== '' || url.password !== '') return { refusal: 'it must not hold a user name or password' }
  if (!rules.privateTargets && url.port !== '' && BAD_PORTS.has(Number(url.port)))
    return { refusal: `port ${url.port} belongs to another service` }
  const refused = checkHost(url.hostname, rules)
  return refused ?? { url }
}

function checkHost(hostname: string, rules: TargetRules): Refusal | undefined {
  const literal = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  if (isIP(literal) !== 0) return checkAddress(literal, rules)
  const name = hostname.replace(/\.+$/, '')
  if (name === '') return { refusal: 'it has no host' }
  if (rules.privateTargets) return undefined
  if (isIP(name) !== 0) return checkAddress(name, rules)
  if (!name.includes('.') || CLOSED_NAMES.test(name))
    return { refusal: 'its host is a name of this machine or of a private network', isPrivate: true }
  return undefined
}
