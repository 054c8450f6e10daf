import { describe, expect, it } from 'vitest'
import { installedSqlite, mayAbort } from '../../bin/native-sqlite.ts'

describe('SQLite’s native part', () => {
  it('is one that does not abort while garbage is collected', () => {
    const addon = installedSqlite()
    expect(addon?.length).toBeGreaterThan(100_000)
    expect(addon && mayAbort(addon)).toBe(false)
  })

  // As nm shows it in one that was compiled with the headers of Node.js 24.21.
  it('is told from one that may, by what it wants of Node.js', () => {
    expect(mayAbort(Buffer.from('\0_ZN4node28RemoveEnvironmentCleanupHookEPN2v87IsolateEPFvPvES3_\0'))).toBe(true)
    expect(mayAbort(Buffer.from('\0_ZN4node25AddEnvironmentCleanupHookEPN2v87IsolateEPFvPvES3_\0'))).toBe(false)
  })
})
