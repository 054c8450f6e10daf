/** Scheme, host and port of an agent, its other host names (`hosts`), and the base URL of its cloud. */
export interface Listening {
  scheme: 'http' | 'https'
  host: string
  port: number
  hosts: readonly string[]
  cloud: string
}

/**
 * Address at which other agents of the store reach this agent. Empty if the agent listens on all addresses and has no
 * configured name. Empty also if the agent listens on loopback, because each machine has its own loopback. If the cloud
 * is on loopback too, all agents are on this machine and the loopback address works.
 */
export function lanAddress({ scheme, host, port, hosts, cloud }: Listening): { address?: string } {
  if (isLoopback(host) && !isLoopback(new URL(cloud).hostname)) return {}
  const isEverywhere = host === '0.0.0.0' || host === '::'
  const name = isEverywhere ? hosts[0] : `${host.includes(':') ? `[${host}]` : host}:${port}`
  return name === undefined ? {} : { address: `${scheme}://${name}` }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || /^127\.|^\[?::1\]?$/.test(host)
}
