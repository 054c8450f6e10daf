import { Duplex } from 'node:stream'
import type { Socket } from 'node:net'
import type { Timers, Clock } from '../../../policy/platform.ts'
import { MAX_PACKET_BYTES, mqttFraming } from '../../../policy/mqtt-framing.ts'
import { budget, type Budget } from '../../../policy/budget.ts'

/** Connection limits of the broker. */
export interface BrokerLimits {
  /** Agents that are connected or were connected within the last day. */
  agents: number
  /** Connections without a login. Such connections never displace an agent. */
  unauthenticated: number
  /** Connections without a login from one address or network. */
  unauthenticatedPerNetwork: number
}

export const BROKER_LIMITS: BrokerLimits = { agents: 10_000, unauthenticated: 256, unauthenticatedPerNetwork: 64 }

/** What a connection may send now. */
interface PacketBudget {
  /** Takes a packet of this size. Returns false if the connection must wait. */
  take(bytes: number): boolean
}

/**
 * Packets that an agent, all agents of an account, and a connection before its login may send: at once, and per second
 * after that. An agent of a busy store sends some packets per second.
 */
export const PACKET_LIMITS = {
  agent: { most: 400, perSecond: 200 },
  account: { most: 4_000, perSecond: 2_000 },
  login: { most: 20, perSecond: 5 },
} as const
/** A packet counts once more for each of these bytes. */
const BYTES_OF_ONE = 8_192
/** Maximum number of agents, and of accounts, with a budget. The one that sent nothing for longest gets a full one. */
const KNOWN_LIMIT = 20_000

const costOf = (bytes: number) => 1 + Math.floor(bytes / BYTES_OF_ONE)

/** The budget of a connection before its login. */
export function loginBudget(clock: Pick<Clock, 'elapsed'>): PacketBudget {
  const own = budget(clock, PACKET_LIMITS.login.most, PACKET_LIMITS.login.perSecond)
  return { take: (bytes) => own.spend(costOf(bytes)) }
}

/** Budgets of agents and accounts. They outlive connections, so that a new connection brings no new budget. */
export class PacketBudgets {
  readonly #clock: Pick<Clock, 'elapsed'>
  readonly #agents = new Map<string, Budget>()
  readonly #accounts = new Map<string, Budget>()

  constructor(clock: Pick<Clock, 'elapsed'>) {
    this.#clock = clock
  }

  of(agentId: string, accountId: string): PacketBudget {
    return {
      take: (bytes) => {
        const cost = costOf(bytes)
        const agent = this.#budgetOf(this.#agents, agentId, PACKET_LIMITS.agent)
        if (!agent.spend(cost)) return false
        if (this.#budgetOf(this.#accounts, accountId, PACKET_LIMITS.account).spend(cost)) return true
        agent.spend(-cost)
        return false
      },
    }
  }

  #budgetOf(known: Map<string, Budget>, id: string, { most, perSecond }: { most: number; perSecond: number }): Budget {
    const own = known.get(id) ?? budget(this.#clock, most, perSecond)
    known.delete(id)
    known.set(id, own)
    const oldest = known.size > KNOWN_LIMIT ? known.keys().next().value : undefined
    if (oldest !== undefined) known.delete(oldest)
    return own
  }
}

/**
 * Filters the bytes between a socket and the broker. The broker buffers whole packets of any size, even before the
 * login, so one client could fill the broker's memory. The guard reads the announced length of each packet. It closes
 * the connection if the length exceeds the limit: 8 KiB before the login, the size of a batch afterwards.
 *
 * It passes on packets only as fast as the budget of the connection allows, some at a time. Until then it does not read
 * the socket, so that TCP slows the sender.
 *
 * The guard never blocks the broker's writes, because one slow client would delay all others. It closes the connection
 * of a client that does not read.
 */
export interface PacketGuard extends Duplex {
  /** Raises the limit to the size of a batch, and replaces the budget by that of the agent. */
  accept(budget: PacketBudget): void
}

const BEFORE_ACCEPTED = 8 * 1024
/** Maximum number of bytes that wait for a slow client. All documents of a store are far smaller. */
const UNREAD_LIMIT = 8 * 1024 * 1024

/** Packets that the broker parses in one turn of the event loop. */
const PACKETS_AT_ONCE = 50
/** Time until a connection with an empty budget is asked again, ms. */
const WAIT_MS = 100

interface GuardParts {
  readonly budget: PacketBudget
  readonly timers: Pick<Timers, 'after'>
  onRefused(why: string): void
}

/** Watches the bytes of one connection before the broker parses them. */
export function packetGuard(socket: Socket, { budget: first, timers, onRefused }: GuardParts): PacketGuard {
  const lengths = mqttFraming(BEFORE_ACCEPTED)
  let budget = first
  /** Bytes that the broker does not have yet. */
  let rest: Uint8Array = new Uint8Array(0)
  let isBusy = false
  let isEnded = false
  /** Bytes of the present packet that were passed on. */
  let size = 0
  /** Bytes of a packet that was passed on and is not paid yet: nothing follows before that. */
  let owed: number | undefined

  const guard = new Duplex({
    read: () => void (isBusy || socket.resume()),
    write(chunk: Uint8Array, _encoding, done) {
      socket.write(chunk)
      if (socket.writableLength <= UNREAD_LIMIT) return done()
      onRefused('it does not read the bytes sent to it')
      done()
      guard.destroy()
    },
    final: (done) => void socket.end(done),
    destroy: (error, done) => {
      socket.destroy()
      done(error)
    },
  })
  /** Passes on the next packets, and pays for each one. Returns what stopped it. */
  function passSome(): 'refused' | 'waits' | 'turn' | 'done' {
    let end = 0
    let packets = 0
    while (owed === undefined && end < rest.length && packets < PACKETS_AT_ONCE) {
      const from = end
      end = lengths.endOfPacket(rest, from)
      if (lengths.violation !== undefined) return 'refused'
      size += end - from
      if (!lengths.isBetweenPackets) break
      packets++
      if (!budget.take(size)) owed = size
      size = 0
    }
    if (end > 0) guard.push(rest.subarray(0, end))
    rest = rest.subarray(end)
    return owed !== undefined ? 'waits' : rest.length > 0 ? 'turn' : 'done'
  }

  function feed(): void {
    if (guard.destroyed) return
    if (owed !== undefined && budget.take(owed)) owed = undefined
    const state = passSome()
    if (state === 'refused') {
      onRefused(lengths.violation ?? 'a wrong packet')
      guard.destroy()
    } else if (state === 'done') {
      isBusy = false
      if (isEnded) guard.push(null)
      else if (guard.readableLength < guard.readableHighWaterMark) socket.resume()
    } else if (state === 'turn') setImmediate(feed)
    else timers.after(WAIT_MS, feed)
  }

  socket.on('data', (chunk: Uint8Array) => {
    socket.pause()
    isBusy = true
    rest = chunk
    feed()
  })
  socket.on('end', () => {
    isEnded = true
    if (!isBusy) guard.push(null)
  })
  socket.on('close', () => guard.destroy())
  socket.on('error', () => guard.destroy())
  return Object.assign(guard, {
    accept(ofAgent: PacketBudget) {
      lengths.maxPacketBytes = MAX_PACKET_BYTES
      budget = ofAgent
    },
  })
}
