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
  summary: 'Changes a key that the cloud signs with, or takes one back at once. For administrators.',
  description:
    'The next key, which was published long before, begins to sign; the former is still verified until nothing that it signed lives. With `revoke` everything it signed is refused from now on, by the cloud and by every agent that hears of it. Keys for policy and freshness serve all accounts; those for tokens and receipts are the account’s, on both of its sides unless `mode` names one.',
  callers: ['admin'],
  changes: true,
  request: z.strictObject({
    use: z.enum(ROTATED_USES),
    revoke: z
      .union([z.boolean(), z.string().regex(/^[A-Za-z0-9_-]{8}$/)])
      .optional()
      .describe('true: the key that signs; a kid: that key.'),
    accountId: Id.optional().describe('Whose token or receipt key; the caller’s when left out.'),
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
