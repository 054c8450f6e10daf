import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openLedger, type Ledger } from '../../../edge-agent/ledger/ledger.ts'
import { commandHandler } from '../../../edge-agent/link/documents/handle-command.ts'
import { messageSigner } from '../../../edge-agent/link/login/sign-messages.ts'
import { Outbox } from '../../../edge-agent/link/reports/outbox.ts'
import type { Trust } from '../../../edge-agent/trust/trust.ts'
import { CommandClaims, type AckClaims } from '../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { keyId, keyRing, newKey, createSigner, type KeyUse } from '../../../policy/documents/keys.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { realPlatform } from '../../../host/platform.ts'

/**
 * Messages that an attacker may publish on an agent's topics: signed for another agent or ledger, or by another key.
 */
const NOW_S = 1_800_000_000
const { random } = realPlatform()
const keyFor = (use: KeyUse) => {
  const { x, secret } = newKey(random)
  return {
    ...createSigner(x, secret),
    record: { kid: keyId(x), alg: 'EdDSA' as const, x, use, iss: 'iss', state: 'active' as const },
  }
}
const freshness = keyFor('freshness')
const token = keyFor('token')
const stranger = keyFor('freshness')
const trust = { keys: keyRing([freshness.record, token.record]) } as unknown as Trust

describe('an acknowledgement', () => {
  let folder: string
  let ledger: Ledger
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'untag-acks-'))
    ledger = openLedger({
      file: join(folder, 'ledger.db'),
      ledgerId: 'led_1',
      generation: 2,
      onFailure: () => undefined,
    })
    await ledger.record({ atMs: 1 })
  })
  afterEach(() => {
    ledger.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const ack = (change: Partial<AckClaims> = {}, by: typeof freshness = freshness) => {
    const { seq, hash: head } = ledger.journal.head
    const own = { aud: 'agt_1', iat: NOW_S, exp: NOW_S + 3_600, ledger: 'led_1', generation: 2, seq, head }
    return signDocument(DOCUMENT_KINDS.ack, { ...own, ...change }, by)
  }
  const take = (text: string) => {
    const identity = { agentId: 'agt_1', ledgerId: 'led_1', generation: 2, secret: '', x: '' } as Parameters<
      typeof messageSigner
    >[0]
    const messages = messageSigner(identity)
    return new Outbox({ ledger, messages, trust, agentId: 'agt_1' }).acknowledge(text)
  }

  it.each<[string, () => string]>([
    ['another agent', () => ack({ aud: 'agt_2' })],
    ['another ledger', () => ack({ ledger: 'led_2' })],
    ['another agent and ledger', () => ack({ aud: 'agt_2', ledger: 'led_2' })],
    ['another generation', () => ack({ generation: 1 })],
    ['another chain', () => ack({ head: 'x'.repeat(43) })],
    ['rows that do not exist', () => ack({ seq: 99 })],
    ['the ledger, by an unknown key', () => ack({}, stranger)],
    ['the ledger, by a key for something else', () => ack({}, token)],
    ['a cloud that nobody has heard of', () => ack({ cloudGeneration: 7 })],
  ])('has no effect if it is for %s', (_, make) => {
    expect(take(make())).toBe(false)
    expect(ledger.journal).toMatchObject({ acked: 0, waiting: 1 })
    expect(take(ack())).toBe(true)
    expect(ledger.journal).toMatchObject({ acked: 1, waiting: 0 })
  })
})

describe('a command', () => {
  const done: string[] = []
  const take = commandHandler({
    agentId: 'agt_1',
    trust,
    clock: { now: () => ({ nowMs: NOW_S * 1_000, trust: 'signed' }) } as unknown as Parameters<
      typeof commandHandler
    >[0]['clock'],
    voidToken: (nonce) => void done.push(`void ${nonce}`),
    onRevoked: () => void done.push('revoke'),
  })
  const command = (name: string, change: object = {}, by: typeof freshness = freshness) =>
    signDocument(
      DOCUMENT_KINDS.command,
      { aud: 'agt_1', iat: NOW_S, exp: NOW_S + 60, jti: 'j', command: name, ...change },
      by,
    )
  beforeEach(() => void done.splice(0))

  it.each(CommandClaims.shape.command.options)('%s has no effect for another agent or with another key', (name) => {
    const void_ = { nonce: 'n-1' }
    expect(take(command(name, { ...void_, aud: 'agt_2' }))).toBe('poll')
    expect(take(command(name, void_, stranger))).toBe('poll')
    expect(take(command(name, void_, token))).toBe('poll')
    expect(take(JSON.stringify({ command: name, ...void_ }))).toBe('poll')
    expect(done).toEqual([])
  })

  it.each(['sync', 'locate', 'restart-driver', 'diagnose'])('%s only causes a poll', (name) => {
    expect(take(command(name, { nonce: 'n-1', deviceId: 'dev_1' }))).toBe('poll')
    expect(done).toEqual([])
  })

  it('emergency is no command: not even the signature of the cloud opens devices', () => {
    expect(take(command('emergency', { deviceId: 'dev_1' }))).toBe('poll')
    expect(done).toEqual([])
  })

  it('void expires after one minute, and revoke never', () => {
    const ended = { iat: NOW_S - 120, exp: NOW_S - 60, nonce: 'n-1' }
    expect(take(command('void', ended))).toBe('poll')
    expect(take(command('void', { nonce: 'n-1' }))).toBe('done')
    expect(take(command('revoke', ended))).toBe('done')
    expect(done).toEqual(['void n-1', 'revoke'])
  })
})
