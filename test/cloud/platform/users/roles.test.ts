import { afterAll, beforeAll, expect, it } from 'vitest'
import { ROLES, type Role } from '../../../../cloud/platform/foundation/caller.ts'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'

const operations = [...OPERATION_TABLE.values()]
const REFUSED = new Set(['role_too_low', 'user_not_allowed'])

inFullSizeOnEveryDatabase('roles', (kind) => {
  let cloud: TestCloud
  const sessions = new Map<Role, string>()
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    for (const role of ROLES) sessions.set(role, await cloud.user(role))
  })
  afterAll(() => cloud.stop())

  it.each(operations.map((operation) => [operation.name, operation] as const))(
    '%s is allowed for exactly the roles that it declares',
    async (name, operation) => {
      if (operation.getOnly) return
      for (const role of ROLES) {
        // The unknown field prevents changes: roles are checked before fields.
        const { status, body } = await cloud.call(sessions.get(role) ?? '', name, { nonsense: 1 })
        const isRefused = status === 403 && REFUSED.has(body.reason)
        const isOpen = operation.callers.includes('anyone')
        expect([role, isRefused]).toEqual([role, !isOpen && !operation.roles.includes(role)])
        expect([role, status < 500 && status !== 401]).toEqual([role, true])
      }
    },
  )

  it('include every higher role', () => {
    for (const { name, roles } of operations) expect([name, roles]).toEqual([name, ROLES.slice(0, roles.length)])
  })

  it('are declared by each operation that only administrators, agents or visitors may call as none', () => {
    for (const { name, callers, roles } of operations) {
      const isForKeys = callers.includes('secret') || callers.length === 0
      if (!isForKeys) expect([name, roles.filter((role) => role !== 'owner' && role !== 'admin')]).toEqual([name, []])
    }
  })
})
