/** What an agent listens on, the names it is asked by (`hosts`), and the API root of its cloud. */
export interface Listening {
  host: string
  port: number
  hosts: readonly string[]
  cloud: string
}

/**
 * Where other agents of the store reach this one; unknown when it listens everywhere and no name is configured, or on this machine alone:
 * on theirs such an address is their own, and what they asked would come back to them. With a cloud on this machine, all are on it.
 */
export function lanAddress({ host, port, hosts, cloud }: Listening): { address?: string } {
  if (isLoopback(host) && !isLoopback(new URL(cloud).hostname)) return {}
  const isEverywhere = host === '0.0.0.0' || host === '::'
  const name = isEverywhere ? hosts[0] : `${host.includes(':') ? `[${host}]` : host}:${port}`
  return name === undefined ? {} : { address: `http://${name}` }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || /^127\.|^\[?::1\]?$/.test(host)
}
