import type { Core } from './core.ts'
import type { HttpServer } from './http.ts'
import { newWire, type Wire } from './wire.ts'

/** The network inside the store. It has faults of its own, independent of the connections to the cloud. */
export interface Lan {
  /** The wire that all agents of the store share. */
  readonly wire: Wire
  join(name: string, server: HttpServer): void
  /** The server of the agent whose address is in this URL. Undefined if no agent has this address. */
  at(url: string): HttpServer | undefined
}

const PORT = 8787

/** Host name and port of an agent. */
export function lanHost(name: string): string {
  return `${name}.sim:${PORT}`
}

/** Creates a network without agents. */
export function newLan(core: Core): Lan {
  const servers = new Map<string, HttpServer>()
  return {
    wire: newWire('lan', core),
    join: (name, server) => void servers.set(lanHost(name), server),
    at: (url) => servers.get(new URL(url).host),
  }
}
