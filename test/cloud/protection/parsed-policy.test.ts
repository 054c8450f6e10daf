import { expect, it } from 'vitest'
import { cachedPolicyCharacters, policyOf } from '../../../cloud/platform/stores/parsed-policy.ts'
import { DEFAULT_POLICY } from '../../../policy/store-policy.ts'

const textOf = (value: number, brands = 0) =>
  JSON.stringify({
    ...DEFAULT_POLICY,
    requiresManualOverrideAboveValue: value,
    requiresStaffForBrand: Array.from({ length: brands }, (_, i) => `${i}`.padStart(100, 'b')),
  })

it('policyOf caches one policy per store, the newest', () => {
  const before = cachedPolicyCharacters()
  for (let i = 1; i <= 500; i++)
    expect(policyOf({ store_id: 'st_one', policy: textOf(i) }).requiresManualOverrideAboveValue).toBe(i)
  expect(cachedPolicyCharacters() - before).toBe(textOf(500).length)
  const row = { store_id: 'st_one', policy: textOf(500) }
  expect(policyOf(row)).toBe(policyOf({ ...row }))
  expect(policyOf({ store_id: 'st_two', policy: row.policy })).toEqual(policyOf(row))
})

it('policyOf limits the memory for large policies of many stores', () => {
  const policy = textOf(1, 500)
  for (let i = 0; i < 300; i++) policyOf({ store_id: `st_large_${i}`, policy })
  expect(cachedPolicyCharacters()).toBeGreaterThan(4 * 1024 * 1024)
  expect(cachedPolicyCharacters()).toBeLessThanOrEqual(8 * 1024 * 1024)
  // The most recently used policy is still cached.
  const last = { store_id: 'st_large_299', policy }
  expect(policyOf(last)).toBe(policyOf(last))
})
