import { connect, createServer, type Server, type Socket } from 'node:net'
import { Transform } from 'node:stream'
import { realPlatform } from '../../../host/platform.ts'

/** TCP proxy between agent and cloud. */
export interface TcpWire {
  /** Port at which the agent reaches the cloud by HTTP. */
  readonly httpPort: number
  readonly mqttPort: number
  cut(): void
  /** Cuts only the connection to the broker. */
  cutBroker(): void
  restore(): void
  /** Delays all data in both directions by `ms`. */
  delay(ms: number): void
  /** Called for all data that the agent sends to the cloud. */
  onAgentData: () => void
  close(): void
}

/** TCP proxy for one port. */
export interface Forward {
  port: number
  /** Discards all data that the target sends, until the next `cut`. Passes the discarded data to `onDiscarded`. */
  mute(onDiscarded: (data: Buffer) => void): void
  cut(): void
  restore(): void
  /** Delays all data in both directions by `ms`. */
  delay(ms: number): void
  close(): void
}

/** Starts a TCP proxy. `cut` closes open connections and refuses new ones. */
export async function forwardTo(
  target: () => number,
  onIncoming: (data: Buffer, connection: Socket) => void = () => undefined,
  host = '127.0.0.1',
): Promise<Forward> {
  const sockets = new Set<Socket>()
  const { timers } = realPlatform()
  let delayMs = 0
  let isCut = false
  let discard: ((data: Buffer) => void) | undefined
  const server: Server = createServer((incoming) => {
    if (isCut) return void incoming.destroy()
    const outgoing = connect(target(), host)
    for (const socket of [incoming, outgoing]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        incoming.destroy()
        outgoing.destroy()
      })
    }
    incoming.on('data', (data: Buffer) => onIncoming(data, incoming))
    const late = () =>
      new Transform({
        transform: (chunk, _encoding, done) =>
          void (delayMs > 0 ? timers.after(delayMs, () => done(null, chunk)) : done(null, chunk)),
      })
    const audible = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        if (!discard) return done(null, chunk)
        discard(chunk)
        done()
      },
    })
    incoming.pipe(late()).pipe(outgoing).pipe(audible).pipe(late()).pipe(incoming)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as { port: number }).port,
    mute: (onDiscarded) => void (discard = onDiscarded),
    cut() {
      isCut = true
      discard = undefined
      for (const socket of sockets) socket.destroy()
    },
    restore: () => void (isCut = false),
    delay: (ms) => void (delayMs = ms),
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Creates the proxy. The cloud may start on these ports later. */
export async function newTcpWire(ports: { http: number; mqtt: number }, host = '127.0.0.1'): Promise<TcpWire> {
  const onIncoming = () => wire.onAgentData()
  const forwards = [
    await forwardTo(() => ports.http, onIncoming, host),
    await forwardTo(() => ports.mqtt, onIncoming, host),
  ]
  const wire: TcpWire = {
    httpPort: forwards[0]?.port ?? 0,
    mqttPort: forwards[1]?.port ?? 0,
    cut: () => forwards.forEach((forward) => forward.cut()),
    cutBroker: () => forwards[1]?.cut(),
    restore: () => forwards.forEach((forward) => forward.restore()),
    delay: (ms) => forwards.forEach((forward) => forward.delay(ms)),
    onAgentData: () => undefined,
    close: () => forwards.forEach((forward) => forward.close()),
  }
  return wire
}

/** Returns a free port. */
export async function unusedPort(): Promise<number> {
  const probe = await forwardTo(() => 0)
  probe.close()
  return probe.port
}
