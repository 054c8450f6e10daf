/** Host and port of an agent, its further names (`hosts`), and the API root of its cloud. */
export interface Listening {
  host: string
  port: number
  hosts: readonly string[]
  cloud: string
}

/**
 * Address at which other agents of the store reach this one. There is none if the agent listens everywhere without a
 * configured name. There is none on loopback either, where other machines would call themselves. If the cloud is on
 * loopback too, all agents are on this machine and loopback works.
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
