import { localApp } from '../../../edge-agent/http/local-app.ts'
import type { AgentNode } from '../agent-node.ts'
import type { Core } from '../core.ts'
import type { HttpServer } from '../http.ts'
import { newWire, type Wire } from '../wire.ts'

/** The network inside the store, which needs no line to the internet: agents reach each other over it. */
export interface StoreNetwork {
  /** The address of the agent with this number, from 1. */
  address(n: number): string
  /** Who answers there; undefined: nobody of this store. */
  at(url: string): { server: HttpServer; wire: Wire } | undefined
}

const HOST = /^http:\/\/(10\.0\.1\.(\d+):8080)\//

/** `agents` may be filled later. */
export function storeNetwork(core: Core, agents: readonly AgentNode[]): StoreNetwork {
  const wire = newWire('store network', core)
  const apps = new WeakMap<object, ReturnType<typeof localApp>>()
  const log = { info: () => undefined, warn: () => undefined, error: (fields: object, message: string) => core.violate('fault', `${message}: ${JSON.stringify(fields)}`) }

  function serverOf(node: AgentNode, host: string): HttpServer {
    return {
      get process() {
        return node.agent && node.machine.process
      },
      async answer({ url, body, ...init }) {
        const { agent } = node
        if (!agent) throw new Error('connection refused')
        const app = apps.get(agent) ?? localApp(agent, { hosts: () => [host], log })
        apps.set(agent, app)
        const answer = await app.request(url, { ...init, headers: { ...init.headers, host }, ...(body !== undefined && { body }) })
        return { status: answer.status, text: await answer.text() }
      },
    }
  }

  return {
    address: (n) => `http://10.0.1.${n}:8080`,
    at(url) {
      const [, host, n] = HOST.exec(url) ?? []
      const node = agents[Number(n) - 1]
      return host !== undefined && node ? { server: serverOf(node, host), wire } : undefined
    },
  }
}
