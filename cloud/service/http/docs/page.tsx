import { raw } from 'hono/html'
import { fieldsOf, basesOf } from '../../description/fields.ts'
import type { GuideSection } from '../../description/guide.ts'
import { API_VERSION, type Description, type DescribedOperation, callersInWords } from '../../description/openapi.ts'
import { CodeLists, codeId, FieldList, schemaId, Prose, Code, Inline } from './field-list.tsx'
import { STYLE } from './style.ts'
import { codeSamples } from '../../description/code-samples.ts'
import type { Operation } from '../../../platform/operations/operation.ts'

/** Where the page finds an id of the caller's sandbox, by the prefix of the id. */
interface Source {
  /** A reading operation that lists objects. */
  operation: string
  /** True if the operation takes a store. The page passes the store that it found. */
  ofStore?: true
  /** Field of the answer with the list. */
  list: string
  /** Field of an object with its id. */
  id: string
  /** Field and value. The first object with this value is taken before others. */
  prefer?: readonly [string, string]
}

/**
 * Sources of the ids in the example requests. The forms of the reference replace example ids by the caller's own, so
 * that the first attempt finds its objects.
 */
export const OWN_IDS: Readonly<Record<string, Source>> = {
  st: { operation: 'fetchStores', list: 'stores', id: 'storeId', prefer: ['package', 'PRIME'] },
  prd: { operation: 'fetchProducts', ofStore: true, list: 'products', id: 'productId' },
  off: { operation: 'getManagerOffers', list: 'offers', id: 'id' },
  loy: { operation: 'getLoyaltyPrograms', list: 'programs', id: 'programId' },
  ord: { operation: 'fetchClickCollectOrders', ofStore: true, list: 'orders', id: 'orderId' },
  pur: { operation: 'fetchPurchaseHistory', list: 'purchases', id: 'transactionId', prefer: ['status', 'SUCCESS'] },
  dev: { operation: 'fetchDevices', ofStore: true, list: 'devices', id: 'deviceId' },
  agt: { operation: 'fetchAgents', ofStore: true, list: 'agents', id: 'agentId' },
  op: { operation: 'fetchOperators', ofStore: true, list: 'operators', id: 'operatorId' },
  evt: { operation: 'fetchAlarms', ofStore: true, list: 'alarms', id: 'eventId' },
  exc: { operation: 'fetchExceptions', ofStore: true, list: 'exceptions', id: 'exceptionId' },
  rcl: { operation: 'fetchRecalls', ofStore: true, list: 'recalls', id: 'recallId' },
  zon: { operation: 'fetchZones', ofStore: true, list: 'zones', id: 'zoneId' },
  hlp: { operation: 'fetchAssistanceRequests', ofStore: true, list: 'requests', id: 'requestId' },
  whk: { operation: 'fetchWebhooks', list: 'webhooks', id: 'webhookId' },
  whd: { operation: 'fetchWebhookDeliveries', list: 'deliveries', id: 'deliveryId' },
}

/** Operations that end something for good. The person must choose what ends. */
const FINAL = /^(?:remove|delete|revoke|decommission|roll|end)[A-Z]|Cancelled$/

/**
 * Which ids the form of an operation replaces. Undefined if no test key can call the operation: such an operation has no
 * form.
 */
export function ownIdsIn({ name, callers }: Pick<Operation, 'name' | 'callers'>): 'all' | 'store' | undefined {
  const isOpen = callers.some((caller) => caller === 'secret' || caller === 'publishable' || caller === 'anyone')
  if (!isOpen) return undefined
  return FINAL.test(name) ? 'store' : 'all'
}

/** Statuses that every operation may return. The guide describes these statuses, so entries only name them. */
const EVERYWHERE: ReadonlySet<number> = new Set([401, 413, 415, 429, 500, 503])

/** Section of one operation. */
function OperationEntry({ described, description }: { described: DescribedOperation; description: Description }) {
  const { operation, request, response, errors } = described
  const { components, baseUrl } = description
  const { name, summary } = operation
  const path = new URL(`${baseUrl}/${name}`).pathname
  const method = operation.getOnly ? 'GET' : 'POST'
  return (
    <article
      id={name}
      data-path={path}
      data-method={method}
      data-try={ownIdsIn(operation)}
      data-changes={operation.changes ? '' : undefined}
      data-open={operation.callers.includes('anyone') ? '' : undefined}
      data-file={operation.multipart?.fileField}
    >
      <header>
        <h3>
          <a href={`#${name}`}>{name}</a>
        </h3>
        <span class="tag">{operation.minimumPackage}</span>
      </header>
      <div class="cols">
        <div class="text">
          <Prose text={summary} />
          {operation.description === summary ? null : <Prose text={operation.description} />}
          <p class="meta">
            <code>
              {method} {path}
            </code>{' '}
            Called with {callersInWords(operation)}.{operation.changes ? ' Takes an Idempotency-Key.' : ''}
            {operation.get ? ' GET answers the older listing form.' : ''}
            {operation.emits.length > 0 ? ` Emits ${operation.emits.join(', ')}.` : ''}
          </p>
          <h4>Request</h4>
          <FieldList
            fields={fieldsOf(request, components, false)}
            bases={basesOf(request, components)}
            mark="required"
          />
          <details>
            <summary>Answer fields</summary>
            <FieldList
              fields={fieldsOf(response, components, false)}
              bases={basesOf(response, components)}
              mark="optional"
            />
          </details>
          <Errors errors={errors} />
        </div>
        <Samples described={described} baseUrl={baseUrl} />
      </div>
    </article>
  )
}

function Errors({ errors }: Pick<DescribedOperation, 'errors'>) {
  return (
    <details>
      <summary>Errors</summary>
      <ul class="errors">
        {errors
          .filter(({ status }) => !EVERYWHERE.has(status))
          .toSorted((a, b) => a.status - b.status)
          .map(({ status, code, example }) => (
            <li>
              <b>{status}</b>{' '}
              <a href={`#${example.reason === undefined ? 'errors' : codeId('reason', example.reason)}`}>
                <code>{example.reason ?? code}</code>
              </a>{' '}
              <Inline text={example.error} />
            </li>
          ))}
        <li>
          And <a href="#errors">those of every operation</a>:{' '}
          {[...new Set(errors.map((e) => e.status).filter((status) => EVERYWHERE.has(status)))]
            .toSorted((a, b) => a - b)
            .join(', ')}
          .
        </li>
      </ul>
    </details>
  )
}

function Samples({ described, baseUrl }: { described: DescribedOperation; baseUrl: string }) {
  const { operation, answer } = described
  const { name } = operation
  return (
    <div class="samples">
      {codeSamples(operation, baseUrl).map(({ language, code }, i) => (
        <details name={`code-${name}`} open={i === 0}>
          <summary>{language}</summary>
          <Code text={code} />
        </details>
      ))}
      {/_01KAN/.test(JSON.stringify(operation.example)) ? (
        <p class="own">
          The ids are examples: <a href="#fetchStores">fetchStores</a> lists your stores.
        </p>
      ) : null}
      <details name={`code-${name}`}>
        <summary>Example answer</summary>
        <Code text={JSON.stringify(answer, null, 2)} />
      </details>
    </div>
  )
}

/** Initial requests of the forms for trying operations. */
function exampleRequests({ operations }: Description): Record<string, unknown> {
  return Object.fromEntries(operations.map(({ operation }) => [operation.name, operation.example]))
}

/** Template of the form for trying an operation. The page's script shows the form. */
function TryTemplate() {
  return (
    <template id="try">
      <form>
        <label>
          Test key <small>kept in this tab only; live keys are refused</small>
          <input name="key" type="password" autocomplete="off" spellcheck={false} placeholder="untag_test_sk_…" />
        </label>
        <label class="once">
          Idempotency-Key <small>the same key again gets the same answer</small>
          <input name="once" autocomplete="off" spellcheck={false} />
        </label>
        <label>
          Request
          <textarea name="request" rows={6} spellcheck={false}></textarea>
        </label>
        <label class="file">
          File
          <input name="file" type="file" />
        </label>
        <p class="refused" role="alert" hidden></p>
        <div class="row">
          <button class="send">Send</button>
          <button type="button" class="close">
            Close
          </button>
        </div>
        <output aria-live="polite"></output>
      </form>
    </template>
  )
}

interface Parts {
  description: Description
  guide: readonly GuideSection[]
  /** Scripts of the page. The search and the forms that call operations need these scripts. */
  scripts: readonly string[]
}

/** The API reference, generated from the table of operations. */
export function DocsPage({ description, guide, scripts }: Parts) {
  const areas = [...new Set(description.operations.map((o) => o.operation.area))]
  const shared = Object.entries(description.shared)
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>untag API reference</title>
        <meta name="description" content="Every operation of the untag API with its fields, errors and code samples." />
        <link rel="icon" href="/icon.svg" type="image/svg+xml" />
        <style>{raw(STYLE)}</style>
      </head>
      <body>
        <a class="skip" href="#content">
          Skip to the content
        </a>
        <div class="bar">
          <strong>untag API</strong>
          <button type="button" popovertarget="menu">
            Contents
          </button>
        </div>
        <Menu areas={areas} description={description} guide={guide} />
        <main id="content" tabindex={-1}>
          <h1>untag API reference</h1>
          <Lead areas={areas} count={description.operations.length} />
          <section class="guide">
            {guide.map(({ id, title, text }) => (
              <>
                <h3 id={id}>{title}</h3>
                {text.map((paragraph) => (
                  <Prose text={paragraph} />
                ))}
              </>
            ))}
          </section>
          {areas.map((area) => (
            <section>
              <h2 id={areaId(area)}>{titled(area)}</h2>
              {description.operations
                .filter((o) => o.operation.area === area)
                .map((described) => (
                  <OperationEntry described={described} description={description} />
                ))}
            </section>
          ))}
          <section>
            <h2 id="schemas">Shared schemas</h2>
            {shared.map(([name, schema]) => (
              <article id={schemaId(name)}>
                <h3>{name}</h3>
                <FieldList fields={fieldsOf(schema, description.components, false)} bases={[]} mark="optional" />
              </article>
            ))}
          </section>
          <CodeLists />
        </main>
        <TryTemplate />
        <script type="application/json" id="examples">
          {raw(forScript(JSON.stringify(exampleRequests(description))))}
        </script>
        <script type="application/json" id="own-ids">
          {raw(forScript(JSON.stringify(OWN_IDS)))}
        </script>
        {scripts.map((script) => (
          <script>{raw(script)}</script>
        ))}
      </body>
    </html>
  )
}

function Lead({ areas, count }: { areas: readonly string[]; count: number }) {
  return (
    <div class="lead">
      <p>
        Version {API_VERSION}, {count} operations: {areas.join(', ')}.
      </p>
      <ul class="links">
        <li>
          <a href="/openapi.json">OpenAPI 3.0.3</a>
        </li>
        <li>
          <a href="/postman.json">Postman collection</a>
        </li>
        <li>
          <a href="/llms.txt">llms.txt</a>
        </li>
      </ul>
    </div>
  )
}

interface MenuParts {
  areas: readonly string[]
  description: Description
  guide: readonly GuideSection[]
}

function Menu({ areas, description, guide }: MenuParts) {
  return (
    <nav id="menu" popover="auto" aria-label="Contents">
      <p>
        <a href="#content">
          untag API <span>{API_VERSION}</span>
        </a>
      </p>
      <input
        id="search"
        type="search"
        placeholder="Search (press /)"
        aria-label="Search guide, operations, fields and codes"
        autocomplete="off"
        hidden
      />
      <p id="result-count" role="status"></p>
      <ol id="results" hidden></ol>
      <div id="contents">
        <Contents areas={areas} description={description} guide={guide} />
      </div>
    </nav>
  )
}

function Contents({ areas, description, guide }: MenuParts) {
  return (
    <>
      <b>Guide</b>
      <ul>
        {guide.map(({ id, title }) => (
          <li>
            <a href={`#${id}`}>{title}</a>
          </li>
        ))}
      </ul>
      {areas.map((area) => (
        <div>
          <b>{titled(area)}</b>
          <ul>
            {description.operations
              .filter((o) => o.operation.area === area)
              .map(({ operation }) => (
                <li>
                  <a href={`#${operation.name}`}>{operation.name}</a>
                </li>
              ))}
          </ul>
        </div>
      ))}
      <b>More</b>
      <ul>
        <li>
          <a href="#schemas">Shared schemas</a>
        </li>
        <li>
          <a href="#codes">Codes</a>
        </li>
      </ul>
    </>
  )
}

function titled(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function areaId(area: string): string {
  return `area-${area.replaceAll(' ', '-')}`
}

/** Escapes JSON for a script element. */
function forScript(json: string): string {
  return json.replaceAll('<', String.raw`\u003c`)
}
