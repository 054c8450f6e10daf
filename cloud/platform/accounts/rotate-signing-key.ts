import { z } from 'zod'
import { keyCaller } from '../foundation/caller.ts'
import { notFound } from '../foundation/failure.ts'
import { Id, Success } from '../operations/fields.ts'
import { operation } from '../operations/operation.ts'
import { issuersOf } from '../authority/issuers.ts'
import { ROTATED_USES } from '../authority/rotate-key.ts'

export const rotateSigningKey = operation({
  name: 'rotateSigningKey',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: [],
  summary: 'Rotates a signing key of the cloud, or revokes one at once. For administrators.',
  description:
    'The next key, which is already published, starts to sign. The previous key stays valid until everything that it signed has expired. With `revoke`, the cloud and all agents that receive the new key set reject everything that the key signed. Keys for policy and freshness serve all accounts. Keys for tokens and receipts belong to one account, in both modes unless `mode` names one.',
  callers: ['admin'],
  changes: true,
  request: z.strictObject({
    use: z.enum(ROTATED_USES),
    revoke: z
      .union([z.boolean(), z.literal('all'), z.string().regex(/^[A-Za-z0-9_-]{8}$/)])
      .optional()
      .describe(
        '`true`: revokes the key that signs now. `all`: revokes this key, the next one and former ones. A kid: revokes that key.',
      ),
    accountId: Id.optional().describe('Account of the token or receipt key. Default: the account of the caller.'),
    mode: z.enum(['test', 'live']).optional(),
  }),
  response: z.strictObject({
    ...Success,
    kid: z.string().describe('The key that signs from now on.'),
    keys: z.array(z.strictObject({ iss: z.string(), kid: z.string() })),
  }),
  example: { use: 'token' },
  async run(call, { use, revoke = false, accountId, mode }) {
    const keys = []
    for (const iss of await issuersOf(
      call.db,
      { use, mode, accountId: accountId ?? keyCaller(call.caller).accountId },
      revoke,
    ))
      keys.push({ iss, kid: await call.services.authority.rotate(call.db, { iss, use, revoke }) })
    const [first] = keys
    if (!first) throw notFound('signing key')
    call.changed(first.kid)
    call.afterCommit(() => call.services.agents.keysChanged())
    return { success: true as const, kid: first.kid, keys }
  },
})
