import { Duplex } from 'node:stream'
import type { Socket } from 'node:net'
import { generate } from 'mqtt-packet'
import { expect, it } from 'vitest'
import {
  loginBudget,
  PACKET_LIMITS,
  PacketBudgets,
  packetGuard,
} from '../../../../cloud/service/messaging/packet-guard.ts'
import { virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { untilInProcess } from '../../../support/receiver.ts'

const PACKET = generate({ cmd: 'publish', topic: 'a', payload: 'b', qos: 0, dup: false, retain: false })
const turns = async (count: number) => {
  for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve))
}

function connection() {
  const platform = virtualPlatform()
  const refused: string[] = []
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  const guard = packetGuard(socket as Socket, {
    budget: loginBudget(platform.clock),
    timers: platform.timers,
    onRefused: (why) => void refused.push(why),
  })
  const budgets = new PacketBudgets(platform.clock)
  let passed = 0
  guard.on('data', (chunk: Buffer) => void (passed += chunk.length))
  return { platform, socket, guard, budgets, refused, packets: () => passed / PACKET.length }
}

it('passes on packets some at a time, then as fast as the agent’s budget grows', async () => {
  const { platform, socket, guard, budgets, packets } = connection()
  guard.accept(budgets.of('agt_1', 'acc_1'))
  socket.push(Buffer.concat(Array.from({ length: 3_000 }, () => PACKET)))
  await untilInProcess('the first packets', () => packets() >= PACKET_LIMITS.agent.most)
  await turns(50)
  expect(packets()).toBeLessThanOrEqual(PACKET_LIMITS.agent.most + 1)
  await platform.advance(5_000)
  await turns(50)
  const after = packets()
  expect(after).toBeGreaterThan(PACKET_LIMITS.agent.most + 3 * PACKET_LIMITS.agent.perSecond)
  expect(after).toBeLessThanOrEqual(PACKET_LIMITS.agent.most + 5 * PACKET_LIMITS.agent.perSecond + 1)
})

it('keeps the budget of an agent over connections, and limits the account', async () => {
  const platform = virtualPlatform()
  const budgets = new PacketBudgets(platform.clock)
  let taken = 0
  for (let agent = 0; agent < 100; agent++) while (budgets.of(`agt_${agent}`, 'acc_1').take(2)) taken++
  expect(taken).toBe(PACKET_LIMITS.account.most)
  expect(budgets.of('agt_0', 'acc_1').take(2)).toBe(false)
  expect(budgets.of('agt_other', 'acc_2').take(2)).toBe(true)
  await platform.advance(1_000)
  expect(budgets.of('agt_99', 'acc_1').take(2)).toBe(true)
})

it('counts a batch of 300 KB as many packets, and lets no connection send much before its login', async () => {
  const platform = virtualPlatform()
  const budget = new PacketBudgets(platform.clock).of('agt_1', 'acc_1')
  let batches = 0
  while (budget.take(300_000)) batches++
  expect(batches).toBe(10)
  const { socket, packets } = connection()
  socket.push(Buffer.concat(Array.from({ length: 1_000 }, () => PACKET)))
  await turns(50)
  expect(packets()).toBeLessThanOrEqual(PACKET_LIMITS.login.most + 1)
})
