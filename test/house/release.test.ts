import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FIXTURES, fixtureHash, releaseFaults, schemaHash, unpinnedImages } from '../../scripts/release-checks.js'
import { temporaryFolder } from '../support/databases.ts'

const READY = {
  version: '0.1.0',
  changelog: '# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n\n### Added\n\n- A.\n',
  status: '',
  fixture: 'abc',
  schema: 'abc',
  today: '2026-12-01',
  unpinned: [],
}

describe('npm run release', () => {
  it('accepts a clean checkout with a heading and data of the release', () => {
    expect(releaseFaults(READY)).toEqual([])
  })

  it.each([
    [{ status: ' M a.ts\n?? b.ts\n' }, 'git: 2 changed files: commit or remove them first'],
    [
      { changelog: '## [Unreleased]\n\n- A.\n' },
      'CHANGELOG.md: no heading "## [0.1.0] - 2026-12-01": add it below "## [Unreleased]"',
    ],
    [{ changelog: '## [Unreleased]\n\n## [0x1.0] - 2026-12-01\n' }, 'CHANGELOG.md: no heading'],
    [
      { changelog: '## [Unreleased]\n\n### Added\n\n- B.\n\n## [0.1.0] - 2026-12-01\n' },
      'CHANGELOG.md: entries below "## [Unreleased]": move them below "## [0.1.0]"',
    ],
    [{ fixture: undefined }, 'test/fixtures/releases/0.1.0 is missing: run UNTAG_WRITE_FIXTURE=true npx vitest run'],
    [{ fixture: 'old' }, 'test/fixtures/releases/0.1.0 has another schema: run UNTAG_WRITE_FIXTURE=true npx vitest'],
    [{ unpinned: ['Dockerfile: a:1'] }, 'Dockerfile: a:1 has no digest: run packaging/pin-images, and commit it'],
  ])('rejects %j', (change, fault) => {
    expect(releaseFaults({ ...READY, ...change })).toEqual([expect.stringContaining(fault)])
  })

  it('refuses images without a digest, which packaging/pin-images writes', () => {
    const base = temporaryFolder('images')
    for (const file of ['Dockerfile', 'compose.yaml', 'compose.edge.yaml'])
      writeFileSync(join(base, file), readFileSync(file))
    const images = unpinnedImages(base)
    expect(images).toContain('compose.yaml: docker.io/library/postgres:17-trixie')
    const digestOf = (image: string) => `sha256:${createHash('sha256').update(image).digest('hex')}`
    const docker = '#!/bin/sh\nprintf sha256:; printf %s "$4" | sha256sum | cut -d " " -f 1\n'
    writeFileSync(join(base, 'docker'), docker, { mode: 0o700 })
    const pin = () =>
      spawnSync('packaging/pin-images', [base], { encoding: 'utf8', env: { PATH: `${base}:${process.env['PATH']}` } })
    for (let n = 0; n < 2; n++) {
      expect(pin()).toMatchObject({ status: 0, stderr: '' })
      expect(unpinnedImages(base)).toEqual([])
    }
    for (const name of ['node:24-trixie', 'node:24-trixie-slim']) {
      const image = `docker.io/library/${name}`
      expect(readFileSync(join(base, 'Dockerfile'), 'utf8')).toContain(`BASE=${image}@${digestOf(image)}\n`)
    }
    writeFileSync(join(base, 'docker'), '#!/bin/sh\necho no such image\n')
    expect(pin()).toMatchObject({ status: 1, stderr: expect.stringContaining('docker gave no digest for docker.io/') })
    rmSync(base, { recursive: true })
  })

  it('compares the data with the sources of the schema', () => {
    const base = temporaryFolder('release')
    const write = (path: string, text: string) => {
      mkdirSync(dirname(join(base, path)), { recursive: true })
      writeFileSync(join(base, path), text)
    }
    write('cloud/platform/persistence/migrations/0001.ts', 'CREATE TABLE a')
    write('edge-agent/ledger/file/ledger-file.ts', 'CREATE TABLE b')
    const before = schemaHash(base)
    write('cloud/platform/persistence/migrations/0001.ts', 'CREATE TABLE c')
    expect(schemaHash(base)).not.toBe(before)
    expect(fixtureHash('0.1.0', base)).toBeUndefined()
    write(`${FIXTURES}/0.1.0/schema.sha256`, `${before}\n`)
    expect(fixtureHash('0.1.0', base)).toBe(before)
    rmSync(base, { recursive: true })
  })
})
