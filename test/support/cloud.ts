import { rmSync } from 'node:fs'
import { outgoingHttp } from '../../host/outgoing-http.ts'
import { realPlatform } from '../../host/platform.ts'
import { secretFiles } from '../../host/secret-files.ts'
import { createApiKey, type KeyKind } from '../../cloud/platform/accounts/api-keys.ts'
import { ensureAccount } from '../../cloud/sales/registrations/registrations.ts'
import { keysOf, loadKeyFiles } from '../../cloud/platform/authority/key-files.ts'
import { createCloud, type Cloud } from '../../cloud/cloud.ts'
import type { Log } from '../../cloud/platform/foundation/log.ts'
import type { CloudConfig } from '../../cloud/platform/foundation/config.ts'
import type { ImageStore, UploadReader } from '../../cloud/platform/foundation/ports.ts'
import type { OtherProcesses } from '../../cloud/service/messaging/agent-messages.ts'
import type { OutgoingHttp } from '../../cloud/platform/outgoing/outgoing-http.ts'
import {
  PLATFORM_ACCOUNT,
  PLATFORM_ROLE,
  type Mode,
  type UserRole,
  type Package,
} from '../../cloud/platform/foundation/caller.ts'
import { ensurePlatformAccount } from '../../cloud/platform/accounts/platform-account.ts'
import { invite } from '../../cloud/platform/users/invitations.ts'
import { startSession } from '../../cloud/platform/users/sessions.ts'
import { updateUserRow } from '../../cloud/platform/users/user-queries.ts'
import { newId } from '../../policy/ids.ts'
import type { Platform } from '../../policy/platform.ts'
import { newDatabase, temporaryFolder, type DatabaseKind, type TestDatabase } from './databases.ts'
import { formBody, lateBody } from './form-body.ts'

/** Responses are untyped here, because the cloud checks their shape (checkAnswers). */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = any

export interface Answer {
  status: number
  body: Json
  text: string
  headers: Headers
}

export interface TestCloud {
  cloud: Cloud
  platform: Platform
  db: TestDatabase
  /** Folder of the keys. Another process on the same database needs them too. */
  keyFolder: string
  errors: unknown[]
  baseUrl: string
  key(
    kind: KeyKind,
    mode?: Mode,
    options?: { account?: string; package?: Package; storeIds?: string[] },
  ): Promise<string>
  /** Session token of a new user, who signed in with a second factor. The platform's role is in the platform's account. */
  user(
    role: UserRole,
    options?: { account?: string; package?: Package; mode?: Mode; storeIds?: string[]; hasSecondFactor?: boolean },
  ): Promise<string>
  /** Calls an operation without a socket. */
  call(key: string | null, operation: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Sends fields as multipart/form-data; `file` and `snapshot` as files. */
  sendForm(key: string | null, operation: string, fields: Record<string, unknown>): Promise<Answer>
  /** Like `call` or `sendForm`. The body arrives after `meanwhile`, which runs when the cloud reads the body. */
  callLate(key: string, operation: string, fields: Json, meanwhile: () => Promise<unknown>): Promise<Answer>
  /** Like `call`, but throws unless the status is 200. Returns the body. */
  ok(key: string, operation: string, body?: unknown, headers?: Record<string, string>): Promise<Json>
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  /** Stops the cloud and starts another one on the same database. `between` runs after the stop. */
  restart(between?: () => Promise<void> | void): Promise<void>
  stop(): Promise<void>
}

export const TEST_CONFIG: CloudConfig = {
  baseUrl: 'https://shop.example/api/v1',
  mqttUrl: 'mqtt://127.0.0.1:1883',
  rateLimit: 0,
  publishableRateLimit: 10,
  checkAnswers: true,
  allowPrivateTargets: false,
  trustedProxies: [],
}

function imagesInMemory(): ImageStore {
  const images = new Map<string, Uint8Array>()
  return {
    put: async (name, bytes) => void images.set(name, bytes),
    get: async (name) => images.get(name),
  }
}

export async function startTestCloud(
  kind: DatabaseKind,
  options: {
    config?: Partial<CloudConfig>
    platform?: Platform
    images?: ImageStore
    outgoing?: OutgoingHttp
    uploads?: UploadReader
    others?: OtherProcesses
  } = {},
): Promise<TestCloud> {
  const platform = options.platform ?? realPlatform()
  const db = await newDatabase(kind)
  const folder = temporaryFolder('keys')
  const errors: unknown[] = []
  const log: Log = { info: () => undefined, warn: () => undefined, error: (fields) => void errors.push(fields) }
  const config = { ...TEST_CONFIG, ...options.config }
  const images = options.images ?? imagesInMemory()
  const outgoing = options.outgoing ?? outgoingHttp()
  const start = async () =>
    createCloud({
      config,
      platform,
      log,
      database: db.database,
      keyFiles: await loadKeyFiles(keysOf(folder), secretFiles, platform.random),
      images,
      outgoing,
      ...(options.uploads && { uploads: options.uploads }),
      ...(options.others && { others: options.others }),
    })

  const read = async (response: Response): Promise<Answer> => {
    const text = await response.text()
    let body: Json = text
    try {
      body = JSON.parse(text)
    } catch {
      // The response is a page, not JSON.
    }
    return { status: response.status, body, text, headers: response.headers }
  }
  const post = async (
    key: string | null,
    operation: string,
    body: string | ArrayBuffer | ReadableStream,
    headers: Record<string, string>,
  ) =>
    read(
      await running.cloud.app.request(`/api/v1/${operation}`, {
        method: 'POST',
        headers: { ...(key !== null && { authorization: `Bearer ${key}` }), ...headers },
        body,
        ...(body instanceof ReadableStream && { duplex: 'half' }),
      }),
    )
  const call: TestCloud['call'] = (key, operation, body = {}, headers = {}) =>
    post(key, operation, typeof body === 'string' ? body : JSON.stringify(body), {
      'content-type': 'application/json',
      ...headers,
    })
  const formOf = (fields: Record<string, unknown>) => {
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) {
      const text = typeof value === 'string' ? value : JSON.stringify(value)
      form.set(name, name === 'file' || name === 'snapshot' ? new Blob([text]) : text)
    }
    return formBody(form)
  }
  const running: TestCloud = {
    cloud: await start(),
    platform,
    db,
    keyFolder: folder,
    errors,
    baseUrl: config.baseUrl,
    call,
    async sendForm(key, operation, fields) {
      const { body, headers } = await formOf(fields)
      return post(key, operation, body, headers)
    },
    async callLate(key, operation, fields, meanwhile) {
      const isForm = 'file' in fields
      const sent = isForm
        ? await formOf(fields)
        : { body: JSON.stringify(fields), headers: { 'content-type': 'application/json' } }
      return post(key, operation, lateBody(sent.body, meanwhile), sent.headers)
    },
    async key(keyKind, mode = 'test', { account = 'Hafenkante', package: wanted = 'GROW', storeIds } = {}) {
      return db.database.write(async (tx) => {
        const { accountId } = await ensureAccount(tx, account, wanted, platform)
        return (
          await createApiKey(
            tx,
            { accountId, kind: keyKind, mode, name: 'test', ...(storeIds && { storeIds }) },
            platform,
          )
        ).key
      })
    },
    async user(
      role,
      { account = 'Hafenkante', package: wanted = 'GROW', storeIds, hasSecondFactor = true, ...more } = {},
    ) {
      const isOfPlatform = role === PLATFORM_ROLE
      const mode = isOfPlatform ? 'live' : (more.mode ?? 'test')
      return db.database.write(async (tx) => {
        if (isOfPlatform) await ensurePlatformAccount(tx, platform.clock.wall())
        const accountId = isOfPlatform
          ? PLATFORM_ACCOUNT
          : (await ensureAccount(tx, account, wanted, platform)).accountId
        const email = `${newId('x', platform)}@shop.example`.toLowerCase()
        const rights = { role, storeIds: storeIds ?? null, sandboxOnly: false, invitedBy: 'test', mayReplace: false }
        const { userId } = await invite(tx, { accountId, email, name: role, ...rights }, platform)
        const accepted = {
          accepted_ms: platform.clock.wall(),
          invitation_hash: null,
          invitation_expires_ms: null,
          totp_secret: null,
          totp_step: 0,
          recovery_codes: '[]',
          mode,
        }
        await updateUserRow(tx, userId, accepted)
        const row = await tx
          .selectFrom('console_user')
          .selectAll()
          .where('user_id', '=', userId)
          .executeTakeFirstOrThrow()
        const session = { state: 'active' as const, hasSecondFactor, userAgent: 'test' }
        return (await startSession(tx, row, session, platform)).sessionToken
      })
    },
    async ok(key, operation, body, headers) {
      const answer = await call(key, operation, body, headers)
      if (answer.status !== 200) {
        const logged = answer.status === 500 ? `, logged: ${String((errors.at(-1) as Json)?.err)}` : ''
        throw new Error(`${operation} answered ${answer.status}: ${answer.text}${logged}`)
      }
      return answer.body
    },
    get: async (path, headers = {}) => read(await running.cloud.app.request(path, { headers })),
    async restart(between) {
      await running.cloud.stop()
      await db.database.close()
      await between?.()
      db.database = await db.again()
      running.cloud = await start()
    },
    async stop() {
      await running.cloud.stop()
      await db.database.close()
      await db.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return running
}
