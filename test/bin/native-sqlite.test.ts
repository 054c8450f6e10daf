import { describe, expect, it } from 'vitest'
import { installedSqlite, mayAbort } from '../../host/native-sqlite.ts'

describe('SQLite’s native part', () => {
  it('does not abort during garbage collection', () => {
    const addon = installedSqlite()
    expect(addon?.length).toBeGreaterThan(100_000)
    expect(addon && mayAbort(addon)).toBe(false)
  })

  // Symbol names that nm shows for a build with headers of Node.js 24.21.
  it('is distinguished from a faulty build by its imported symbols', () => {
    expect(mayAbort(Buffer.from('\0_ZN4node28RemoveEnvironmentCleanupHookEPN2v87IsolateEPFvPvES3_\0'))).toBe(true)
    expect(mayAbort(Buffer.from('\0_ZN4node25AddEnvironmentCleanupHookEPN2v87IsolateEPFvPvES3_\0'))).toBe(false)
  })
})
