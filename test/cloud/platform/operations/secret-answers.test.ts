import { expect, it } from 'vitest'
import { z } from 'zod'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'

/** Names of fields that hold a secret: who reads them may use a right. */
const SECRET =
  /"(\w*[sS]ecret|\w*[pP]assword|pin|key|\w*(?:access|refresh|session)Token|(?:card|pairing|enrolment|setup|pickup)Code)":\{"type":"string"/

it('answers that hold a secret are stored sealed', () => {
  const open: string[] = []
  for (const { name, changes, callers, roles, proofInBody, secretResponse, response } of OPERATION_TABLE.values()) {
    // The cloud stores no answer of a caller that it does not know.
    const isStored = changes && (proofInBody || roles.length > 0 || callers.some((caller) => caller !== 'anyone'))
    const shape = JSON.stringify(z.toJSONSchema(response, { unrepresentable: 'any', io: 'output' }))
    const [, field] = SECRET.exec(shape) ?? []
    if (isStored && !secretResponse && field !== undefined) open.push(`${name}: ${field}`)
  }
  expect(open).toEqual([])
})
