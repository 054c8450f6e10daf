import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CloudConfig } from '../../../platform/foundation/config.ts'
import { guideSections, llmsFullText, llmsText } from '../../description/guide.ts'
import { postmanCollection } from '../../description/postman.ts'
import { describeApi } from '../../description/openapi.ts'
import type { Operation } from '../../../platform/operations/operation.ts'
import { staticDocument, type StaticDocument } from '../static-document.ts'
import { DocsPage } from './page.tsx'
import { STYLE } from './style.ts'

/** Documents about the API by path. */
type ApiDocuments = Readonly<Record<string, StaticDocument>>

type Config = Pick<CloudConfig, 'baseUrl' | 'rateLimit' | 'publishableRateLimit'>

const ANYWHERE = { 'access-control-allow-origin': '*' }
const PLAIN = 'text/plain; charset=utf-8'

/**
 * Makes the documents about these operations. Each document is generated at its first request, so that the start stays
 * fast.
 */
export function apiDocuments(operations: ReadonlyMap<string, Operation>, config: Config): ApiDocuments {
  const description = once(() => describeApi(operations, config.baseUrl))
  const guide = once(() => guideSections(config))
  return {
    '/openapi.json': madeOnce(() =>
      staticDocument(JSON.stringify(description().openApi), 'application/json', ANYWHERE),
    ),
    '/postman.json': madeOnce(() =>
      staticDocument(JSON.stringify(postmanCollection(description())), 'application/json', ANYWHERE),
    ),
    '/llms.txt': madeOnce(() => staticDocument(llmsText(description(), guide()), PLAIN)),
    '/llms-full.txt': madeOnce(() => staticDocument(llmsFullText(description(), guide()), PLAIN)),
    '/docs': madeOnce(() => {
      const scripts = readScripts()
      return staticDocument(
        `<!doctype html>${String(DocsPage({ description: description(), guide: guide(), scripts }))}`,
        'text/html; charset=utf-8',
        pageHeaders(scripts),
      )
    }),
  }
}

function madeOnce(make: () => StaticDocument): StaticDocument {
  const document = once(make)
  return { answer: (c) => document().answer(c) }
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => (made ??= { value: make() }).value
}

/** Security headers: the page may run its own scripts and call the API of its origin. */
function pageHeaders(scripts: readonly string[]): Record<string, string> {
  const allowed = [
    "default-src 'none'",
    `script-src ${scripts.map((script) => `'sha256-${hashOf(script)}'`).join(' ')}`,
    `style-src 'sha256-${hashOf(STYLE)}'`,
    "connect-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  return { 'content-security-policy': allowed.join('; '), 'referrer-policy': 'no-referrer' }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

/**
 * Scripts of the page: the search library and the compiled scripts of this folder. Tests run the sources, so they use
 * the scripts of the last build.
 */
function readScripts(): string[] {
  const here = import.meta.dirname
  const folder = existsSync(join(here, 'documents.ts')) ? join(here, '../../../../dist/cloud/service/http/docs') : here
  const programs = ['search.js', 'docs.js'].map((name) => join(folder, 'browser', name)).filter(existsSync)
  const library = createRequire(import.meta.url).resolve('minisearch')
  return [
    `/* MiniSearch, MIT, https://github.com/lucaong/minisearch */${withoutComments(join(library, '../../umd/index.js'))}`,
    // The scripts are compiled as modules without imports. Wrapped in a function, they run as classic scripts and can
    // use the library's global variable.
    ...programs.map((file) => `(() => {${withoutComments(file).replace(/^export \{\};?$/m, '')}})()`),
  ]
}

/** A script without its comments. No text in these scripts looks like a comment. */
function withoutComments(file: string): string {
  return readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
}
