import type { z } from 'zod'
import type { fetchOfflineFigures } from '../../protection/records/offline-figures.ts'
import type { CsvValue } from '../frame/download.ts'
import type { PageContext } from '../frame/page.ts'
import { Card, EmptyState, Figures } from './card.tsx'
import { Notice } from './notice.tsx'
import { Table } from './table.tsx'

type OfflineFigures = z.output<typeof fetchOfflineFigures.response>

/** First and last day of the figures. */
interface Days {
  readonly from: string
  readonly to: string
}

const HOUR_S = 3_600

/** Hours with one decimal. */
function hoursOf(seconds: number): number {
  return Math.round((seconds / HOUR_S) * 10) / 10
}

function hours({ texts, formats }: PageContext, seconds: number): string {
  return texts.alarmFigures.offline.hours(formats.number(hoursOf(seconds)))
}

/** What it cost that agents were offline, with a link to each list. */
export function OfflineCost({ at, figures, days }: { at: PageContext; figures: OfflineFigures; days: Days }) {
  const t = at.texts.alarmFigures.offline
  const { outages, decisions, exceptions, goods, isCut } = figures
  const { number, money } = at.formats
  const { longerThanSeconds: limitS } = outages
  const outagesNote = outages.count === 1 ? t.outageNote : t.outagesNote(number(outages.count))
  const limit = limitS === undefined ? undefined : t.longerThan(at.formats.span(limitS * 1_000))
  const notes = [outages.count === 0 ? undefined : outagesNote, limit].filter((note) => note !== undefined)
  const valueNote = goods.pieces === 1 ? t.pieceNote : t.valueNote(number(goods.pieces))
  return (
    <>
      <Card title={t.title}>
        <p>{t.text}</p>
        {isCut ? <Notice tone="warn" title={t.cut} /> : null}
      </Card>
      <Figures
        figures={[
          {
            label: t.outages,
            value: hours(at, outages.seconds),
            note: notes.length === 0 ? t.notWatched : notes.join('. '),
          },
          {
            label: t.decisions,
            value: number(decisions.released),
            note: t.decisionsNote(number(decisions.denied)),
            ...(decisions.released + decisions.denied > 0 && {
              href: hrefOf('/console/rules/decisions', days, 'alone'),
            }),
          },
          {
            label: t.value,
            value: money(goods.value),
            note: [valueNote, goods.withoutPrice > 0 ? t.noPrice(number(goods.withoutPrice)) : ''].join(' ').trim(),
          },
        ]}
      />
      {outages.agents.length === 0 ? null : <Agents at={at} agents={outages.agents} />}
      <Exceptions at={at} exceptions={exceptions} days={days} />
    </>
  )
}

function Agents({ at, agents }: { at: PageContext; agents: OfflineFigures['outages']['agents'] }) {
  const t = at.texts.alarmFigures.offline
  return (
    <Card title={t.agents} flush>
      <Table
        caption={t.agents}
        rows={agents}
        columns={[
          {
            label: t.agent,
            kind: 'head',
            cell: ({ agentId, name = agentId, isRunning }) => (
              <>
                {at.opens('/console/agents') ? <a href="/console/agents">{name}</a> : name}
                {isRunning ? <span class="sub">{t.isRunning}</span> : null}
              </>
            ),
          },
          { label: t.count, kind: 'number', cell: ({ count }) => at.formats.number(count) },
          { label: t.time, kind: 'number', cell: ({ seconds }) => hours(at, seconds) },
        ]}
      />
    </Card>
  )
}

function Exceptions({
  at,
  exceptions,
  days,
}: {
  at: PageContext
  exceptions: OfflineFigures['exceptions']
  days: Days
}) {
  const t = at.texts.alarmFigures.offline
  const { number, money } = at.formats
  return (
    <Card title={t.exceptions} flush>
      {exceptions.length === 0 ? (
        <EmptyState title={t.none} />
      ) : (
        <Table
          caption={t.exceptions}
          rows={exceptions}
          columns={[
            {
              label: t.exception,
              kind: 'head',
              cell: ({ kind }) => (
                <a href={hrefOf('/console/exceptions', days, 'kind', kind)}>{at.texts.exceptionTitles[kind]}</a>
              ),
            },
            { label: t.cases, kind: 'number', cell: ({ count }) => number(count) },
            { label: t.pieces, kind: 'number', cell: ({ pieces }) => number(pieces) },
            { label: t.price, kind: 'number', cell: ({ value }) => money(value) },
          ]}
        />
      )}
    </Card>
  )
}

/** Address of a list with the same days. */
function hrefOf(path: string, { from, to }: Days, name: 'alone' | 'kind', value = 'yes'): string {
  return `${path}?${new URLSearchParams({ [name]: value, state: 'all', from, to })}`
}

/** The same numbers as rows of a file. */
export function offlineRows({ texts }: PageContext, figures: OfflineFigures): CsvValue[][] {
  const t = texts.alarmFigures.offline
  const { outages, decisions, exceptions, goods } = figures
  return [
    [],
    [t.title, '', t.count, t.time],
    ...outages.agents.map(({ agentId, name = agentId, count, seconds }) => [t.agents, name, count, hoursOf(seconds)]),
    [t.decisions, '', decisions.released],
    [t.exceptions, '', t.cases, t.pieces, t.price],
    ...exceptions.map(({ kind, count, pieces, value }) => [
      t.exceptions,
      texts.exceptionTitles[kind],
      count,
      pieces,
      { cents: Math.round(value * 100) },
    ]),
    [t.value, '', '', goods.pieces, { cents: Math.round(goods.value * 100) }],
  ]
}
