import { afterAll, beforeAll, expect, it } from 'vitest'
import { EVERY_ROLE, PLATFORM_ROLE, ROLES, type UserRole } from '../../../../cloud/platform/foundation/caller.ts'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'

const operations = [...OPERATION_TABLE.values()]
const REFUSED = new Set(['role_too_low', 'user_not_allowed'])

inFullSizeOnEveryDatabase('roles', (kind) => {
  let cloud: TestCloud
  const sessions = new Map<UserRole, string>()
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    for (const role of EVERY_ROLE) sessions.set(role, await cloud.user(role))
  })
  afterAll(() => cloud.stop())

  it.each(operations.map((operation) => [operation.name, operation] as const))(
    '%s is allowed for exactly the roles that it declares',
    async (name, operation) => {
      if (operation.getOnly) return
      for (const role of EVERY_ROLE) {
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
    for (const { name, roles } of operations) {
      const own = roles.filter((role) => role !== PLATFORM_ROLE)
      expect([name, own]).toEqual([name, ROLES.slice(0, own.length)])
    }
  })

  it('are declared by each operation that only administrators, agents or visitors may call as none', () => {
    for (const { name, callers, roles } of operations) {
      const isForKeys = callers.includes('secret') || callers.length === 0
      const others = roles.filter((role) => role !== 'owner' && role !== 'admin' && role !== PLATFORM_ROLE)
      if (!isForKeys) expect([name, others]).toEqual([name, []])
    }
  })

  it('give the people who run the cloud what admin keys may call, their own account, and nothing of a merchant', () => {
    const ofPlatform = operations.filter(({ roles }) => roles.includes(PLATFORM_ROLE))
    const named = (found: typeof operations) => found.map(({ name }) => name).toSorted()
    const own = new Set(['fetchUsers', 'fetchAuditLog'])
    const isOwn = ({ name, roles }: (typeof operations)[number]) => roles.includes('viewer') || own.has(name)
    const forAdminKeys = operations.filter(({ callers }) => callers.includes('admin'))
    // Signing keys are the business of the command line.
    const decided = named(forAdminKeys).filter((name) => name !== 'rotateSigningKey')
    expect(named(ofPlatform.filter((operation) => !isOwn(operation)))).toEqual(decided)
    for (const operation of ofPlatform.filter(isOwn))
      expect([operation.name, operation.area]).toEqual([
        operation.name,
        operation.name === 'fetchAuditLog' ? 'accounts' : 'users',
      ])
  })

  it.each(operations.map((operation) => [operation.name, operation] as const))(
    '%s is refused to a person who runs the cloud and has no second factor, unless everybody may call it',
    async (name, { roles, callers, getOnly }) => {
      if (getOnly || callers.includes('anyone') || !roles.includes(PLATFORM_ROLE)) return
      const token = await cloud.user(PLATFORM_ROLE, { hasSecondFactor: false })
      const { status, body } = await cloud.call(token, name, { nonsense: 1 })
      const isForAll = EVERY_ROLE.every((role) => roles.includes(role))
      expect([status, body.reason]).toEqual(isForAll ? [400, undefined] : [403, 'second_factor_needed'])
    },
  )
})
