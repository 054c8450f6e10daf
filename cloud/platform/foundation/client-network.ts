import { isIPv6 } from 'node:net'

/** Number of leading groups of an IPv6 address that form its /64 network. */
const NETWORK_GROUPS = 4
const GROUPS = 8

/**
 * Network to which a limit by client address applies: an IPv4 address, or the /64 network of an IPv6 address. A limit
 * per single IPv6 address would have no effect, because one subscriber owns at least a /64.
 */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').split('%')[0] ?? ''
  if (!isIPv6(plain)) return plain
  const [before = '', after] = plain.toLowerCase().split('::')
  const head = groupsOf(before)
  const tail = after === undefined ? [] : groupsOf(after)
  const whole = [...head, ...Array.from({ length: GROUPS - head.length - tail.length }, () => '0'), ...tail]
  return `${whole
    .slice(0, NETWORK_GROUPS)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}

/**
 * The last two groups may be written as IPv4. Replaces these groups by zeros, because they are not part of the network.
 */
function groupsOf(text: string): string[] {
  return text === '' ? [] : text.split(':').flatMap((group) => (group.includes('.') ? ['0', '0'] : [group]))
}
