import { isIPv6 } from 'node:net'

/** Groups of an IPv6 address that name its /64 network. */
const NETWORK_GROUPS = 4
const GROUPS = 8

/**
 * The unit of limits by address: an IPv4 address, or the /64 network of an IPv6 address. One IPv6 subscriber owns at least a /64,
 * so single addresses would not limit anything.
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

/** The last two groups may be written as IPv4. They are not part of the network. */
function groupsOf(text: string): string[] {
  return text === '' ? [] : text.split(':').flatMap((group) => (group.includes('.') ? ['0', '0'] : [group]))
}
