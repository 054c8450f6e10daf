import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CloudConfig } from '../../config.ts'
import { guideSections } from '../../description/guide.ts'
import { llmsFullText, llmsText } from '../../description/llms.ts'
import { postmanCollection } from '../../description/postman.ts'
import { describeApi } from '../../operations/openapi.ts'
import type { Operation } from '../../operations/operation.ts'
import { staticDocument, type StaticDocument } from '../static-document.ts'
import { DocsPage } from './page.tsx'
import { STYLE } from './style.ts'

/** The documents about the API by their path: made once, out of the table of operations. */
export type ApiDocuments = Readonly<Record<string, StaticDocument>>

type Config = Pick<CloudConfig, 'baseUrl' | 'rateLimit' | 'publishableRateLimit'>

/** The last that were made: a process describes one API, tests the same one many times. */
let last: { operations: ReadonlyMap<string, Operation>; config: string; documents: ApiDocuments } | undefined

/** Makes every document about these operations. */
export function apiDocuments(operations: ReadonlyMap<string, Operation>, { baseUrl, rateLimit, publishableRateLimit }: Config): ApiDocuments {
  const config = JSON.stringify([baseUrl, rateLimit, publishableRateLimit])
  if (last?.operations === operations && last.config === config) return last.documents
  const documents = make(operations, { baseUrl, rateLimit, publishableRateLimit })
  last = { operations, config, documents }
  return documents
}

function make(operations: ReadonlyMap<string, Operation>, config: Config): ApiDocuments {
  const description = describeApi(operations, config.baseUrl)
  const guide = guideSections(config)
  const script = readScript()
  const page = `<!doctype html>${String(DocsPage({ description, guide, script }))}`
  const anywhere = { 'access-control-allow-origin': '*' }
  return {
    '/openapi.json': staticDocument(JSON.stringify(description.openApi), 'application/json', anywhere),
    '/postman.json': staticDocument(JSON.stringify(postmanCollection(description)), 'application/json', anywhere),
    '/llms.txt': staticDocument(llmsText(description, guide), 'text/plain; charset=utf-8'),
    '/llms-full.txt': staticDocument(llmsFullText(description, guide), 'text/plain; charset=utf-8'),
    '/docs': staticDocument(page, 'text/html; charset=utf-8', pageHeaders(script)),
  }
}

/** The page may run its one program and call the API of its own origin; nothing else. */
function pageHeaders(script: string): Record<string, string> {
  const allowed = [
    "default-src 'none'",
    `script-src 'sha256-${hashOf(script)}'`,
    `style-src 'sha256-${hashOf(STYLE)}'`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  return { 'content-security-policy': allowed.join('; '), 'referrer-policy': 'no-referrer' }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

/** Beside this file once it is built; tests run the sources, and use what was built last. */
function readScript(): string {
  const here = import.meta.dirname
  const folder = existsSync(join(here, 'documents.ts')) ? join(here, '../../../dist/cloud/http/docs') : here
  const file = join(folder, 'browser/docs.js')
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}
