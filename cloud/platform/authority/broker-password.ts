import { hkdfSync } from 'node:crypto'
import { assert } from '../../../policy/assert.ts'
import type { KeyFiles } from './key-files.ts'

const PASSWORD_BYTES = 24

/**
 * Password of an agent at an outside broker. All processes with the same keys derive the same password, so no table
 * holds it.
 */
export function brokerPassword({ sealingKeys: [key] }: Pick<KeyFiles, 'sealingKeys'>, agentId: string): string {
  assert(key, 'broker passwords need a sealing key')
  return Buffer.from(hkdfSync('sha256', key, 'untag/broker-password/1', agentId, PASSWORD_BYTES)).toString('base64url')
}
