import type { Core } from './core.ts'
import type { HttpServer } from './http.ts'
import { newWire, type Wire } from './wire.ts'

/** The network inside the store, which the agents of a world share: it may be well while the way to the cloud is not, and the other way round. */
export interface Lan {
  /** One for all of them: with two agents there is one way between them. */
  readonly wire: Wire
  join(name: string, server: HttpServer): void
  /** Who listens at the address of a URL; undefined when that is nobody of this network. */
  at(url: string): HttpServer | undefined
}

const PORT = 8787

/** Under which name and port an agent listens. */
export function lanHost(name: string): string {
  return `${name}.sim:${PORT}`
}

/** A network that nobody has joined yet. */
export function newLan(core: Core): Lan {
  const servers = new Map<string, HttpServer>()
  return {
    wire: newWire('lan', core),
    join: (name, server) => void servers.set(lanHost(name), server),
    at: (url) => servers.get(new URL(url).host),
  }
}
