import type { Fetch } from '../edge-agent/link/wire/http-client.ts'
import type { MqttLine, OpenMqttLine } from '../edge-agent/link/wire/broker-line.ts'

/** A simulated network connection of an agent that can be cut and restored. */
export interface NetworkSwitch {
  readonly isCut: boolean
  /** Aborts all requests and connections at once and rejects new requests. */
  cut(): void
  restore(): void
  readonly fetch: Fetch
  readonly openLine: OpenMqttLine
}

export function networkSwitch(fetchThrough: Fetch, openThrough: OpenMqttLine): NetworkSwitch {
  let pulled = new AbortController()
  let isCut = false
  const lines = new Set<() => void>()
  const cutError = () => new Error('the network is cut')

  return {
    get isCut() {
      return isCut
    },
    cut() {
      if (isCut) return
      isCut = true
      pulled.abort(cutError())
      for (const drop of lines) drop()
      lines.clear()
    },
    restore() {
      isCut = false
      pulled = new AbortController()
    },
    async fetch(url, init) {
      if (isCut) throw cutError()
      return fetchThrough(url, { ...init, signal: AbortSignal.any([init.signal, pulled.signal]) })
    },
    async openLine(options, timeoutMs) {
      if (isCut) throw cutError()
      let dropped = false
      const onClosed = (why: string) => {
        if (dropped) return
        dropped = true
        lines.delete(drop)
        options.onClosed(why)
      }
      const line: MqttLine = await openThrough({ ...options, onClosed }, timeoutMs)
      const drop = () => {
        line.close()
        onClosed('the network is cut')
      }
      if (isCut) {
        line.close()
        throw cutError()
      }
      lines.add(drop)
      return line
    },
  }
}
