import type { Siblings } from '../../platform/foundation/ports.ts'
import type { AgentBroker } from './embedded-broker.ts'

/** Time after which the holder of the broker checks again for new or ended connections, ms. */
export const CONNECTED_MS = 500

/** Tracks which agents are connected to the embedded broker, also if another worker holds the broker. */
export class SiblingAgents {
  readonly #siblings: Siblings | undefined
  readonly #broker: () => AgentBroker | undefined
  #elsewhere: ReadonlySet<string> = new Set()
  #announced = ''

  constructor(siblings: Siblings | undefined, broker: () => AgentBroker | undefined) {
    this.#siblings = siblings
    this.#broker = broker
    siblings?.subscribe((message) => {
      if (message.kind === 'agents') this.#elsewhere = new Set(message.connected)
      if (message.kind === 'hello') this.#announced = ''
    })
    siblings?.send({ kind: 'hello' })
  }

  isConnected(agentId: string): boolean {
    return this.#broker()?.connected().has(agentId) ?? this.#elsewhere.has(agentId)
  }

  /**
   * If this process holds the embedded broker, sends the list of connected agents to the other workers if the list has
   * changed.
   */
  announce(): void {
    const broker = this.#broker()
    if (!broker) this.#announced = ''
    if (!broker || broker.owns) return
    const connected = [...broker.connected().keys()]
    const now = `agents ${connected.join(' ')}`
    if (now === this.#announced) return
    this.#announced = now
    this.#siblings?.send({ kind: 'agents', connected })
  }
}
