import { isIPv6 } from 'node:net'

/** Of an IPv6 address these groups name a network; whoever has one has all addresses within. */
const NETWORK_GROUPS = 4
const GROUPS = 8

/**
 * What counts as one caller where callers are counted by address: an IPv4 address, or the /64 network of an IPv6 one. The smallest
 * network that anybody is given holds more addresses than could ever be counted.
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

/** The end may be written as IPv4, which stands for two groups; they name nobody's network. */
function groupsOf(text: string): string[] {
  return text === '' ? [] : text.split(':').flatMap((group) => (group.includes('.') ? ['0', '0'] : [group]))
}
