import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ContractDocument } from '../../scripts/generate/breaking-changes.ts'
import { GENERATED_FILES, outdatedFiles } from '../../scripts/generate/generated-files.ts'
import { ROOT } from '../house/sources.ts'

const API = 'docs/reference/openapi.json'
const AGENT_API = 'docs/reference/agent-openapi.json'

function readFile(file: string): string {
  return existsSync(join(ROOT, file)) ? readFileSync(join(ROOT, file), 'utf8') : ''
}

describe('generated files', () => {
  it.each(GENERATED_FILES)('$file has the text of the code', async ({ file, text }) => {
    expect(readFile(file), `${file} differs from the code: run npm run generate`).toBe(await text(readFile))
  })
})

/** The files of the project, some of them with another text. */
const withTexts = (texts: Readonly<Record<string, string>>) => (file: string) => texts[file] ?? readFile(file)
const textOf = (file: string, texts: Readonly<Record<string, string>>) =>
  GENERATED_FILES.find((each) => each.file === file)?.text(withTexts(texts))

describe('npm run generate', () => {
  it('writes only the files that differ from the code', async () => {
    const texts = {
      'docs/reference/errors.md': readFile('docs/reference/errors.md').replace('| `admin_not_allowed` |', '| `old` |'),
      'docs/reference/configuration.md': readFile('docs/reference/configuration.md').replace('| `--', '| `--old-'),
      'docs/reference/edge-config.schema.json': '',
      'clients/python/untag_client/operations.py': '',
    }
    const written = await outdatedFiles(withTexts(texts))
    expect(written.map(({ file }) => file).toSorted()).toEqual(Object.keys(texts).toSorted())
    for (const { file, text } of written) expect([file, text === readFile(file)]).toEqual([file, true])
  })

  it('writes nothing if one of the texts cannot be made', async () => {
    await expect(outdatedFiles(withTexts({ [API]: '{', 'docs/reference/licences.md': '' }))).rejects.toThrow(API)
  })

  it.each(['docs/reference/errors.md', 'docs/reference/configuration.md'])('fails if %s lacks its marks', (file) => {
    expect(() => textOf(file, { [file]: '' })).toThrow('lacks the marks')
  })

  describe.each([
    [API, 'fetchOldThings'],
    [AGENT_API, 'v1/old-things'],
  ])('after a change of %s', (file, name) => {
    const { paths, ...rest } = JSON.parse(readFile(file)) as ContractDocument
    const withPaths = (changed: ContractDocument['paths']) => JSON.stringify({ ...rest, paths: changed })

    it('fails until CHANGELOG.md declares that an operation was removed', () => {
      const before = withPaths({ ...paths, [`/${name}`]: { post: { responses: {} } } })
      const line = `- Breaking: \`${name}\` was removed.`
      const changelog = readFile('CHANGELOG.md').replace('## [Unreleased]', `## [Unreleased]\n${line} Call another.`)
      expect(() => textOf(file, { [file]: before })).toThrow(`${file}: these changes break callers`)
      expect(() => textOf(file, { [file]: before })).toThrow(line)
      expect(textOf(file, { [file]: before, 'CHANGELOG.md': changelog }) === readFile(file)).toBe(true)
    })

    it('fails until CHANGELOG.md names a new operation', () => {
      const [[first] = ['']] = Object.entries(paths)
      const before = withPaths(Object.fromEntries(Object.entries(paths).filter(([path]) => path !== first)))
      expect(() => textOf(file, { [file]: before, 'CHANGELOG.md': '## [Unreleased]\n' })).toThrow(
        'needs a line that names these operations and events',
      )
      expect(textOf(file, { [file]: before }) === readFile(file)).toBe(true)
    })

    it.each(['', '<<<<<<< HEAD'])('fails if the document is missing or damaged: "%s"', (text) => {
      expect(() => textOf(file, { [file]: text })).toThrow(`git checkout ${file}`)
    })
  })
})
