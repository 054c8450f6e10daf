import type { Hono } from 'hono'
import { localApp } from '../../../../edge-agent/http/local-app.ts'
import type { Log } from '../../../../edge-agent/log.ts'
import type { Agent } from '../../../../edge-agent/runtime.ts'
import { assertResponseMatchesApi } from './agent-response-check.ts'
import type { SimResponse, SimRequest } from '../virtual/http.ts'
import { lanHost } from '../virtual/lan.ts'

/** HTTP interface of a running agent for other agents of the store. */
export interface AgentServer {
  answer(request: SimRequest): Promise<SimResponse>
  /** Rejects new requests and waits for open ones. */
  close(): Promise<void>
}

/** Serves an agent without sockets. The application is created at the first request, because most runs need none. */
export function serveAgent(name: string, agent: Agent, log: Log): AgentServer {
  const underWay = new Set<Promise<SimResponse>>()
  let app: Hono | undefined
  let isClosed = false

  async function reply({ url, body = '', headers, ...init }: SimRequest): Promise<SimResponse> {
    app ??= localApp(agent, { hosts: () => [lanHost(name)], log, credential: () => undefined })
    const sent = { ...headers, host: lanHost(name), 'content-length': String(Buffer.byteLength(body)) }
    const answer = await app.request(url, { ...init, headers: sent, body })
    const text = await answer.text()
    const { pathname } = new URL(url)
    assertResponseMatchesApi({
      method: init.method,
      path: pathname,
      status: answer.status,
      headers: answer.headers,
      text,
    })
    return { status: answer.status, text }
  }

  return {
    answer(request) {
      if (isClosed) return Promise.reject(new Error('connection refused'))
      const replied = reply(request)
      underWay.add(replied)
      const done = () => void underWay.delete(replied)
      replied.then(done, done)
      return replied
    },
    async close() {
      isClosed = true
      await Promise.allSettled(underWay)
    },
  }
}
