import type { Child } from 'hono/jsx'
import { deviceTitle, statusView } from '../model/status-view.ts'
import type { PageDevice, PageStatus } from '../model/wire.ts'
import type { Texts } from '../texts/texts.ts'
import { Frame, type FrameProps, type Localization } from './frame.tsx'
import { SignIn } from './operator.tsx'

interface HeaderProps {
  title: string
  deviceId: string
  status: PageStatus
  texts: Texts
  reader: Parameters<typeof statusView>[3]
}

/** Header with device, store and the state of the agent. */
function Header({ title, deviceId, status, texts, reader }: HeaderProps) {
  const { badges, banners } = statusView(status, deviceId, texts, reader)
  return (
    <header>
      <div class="bar">
        <div class="place">
          <h1>{title}</h1>
          <p class="ids">{status.storeName}</p>
        </div>
        <ul class="badges" data-slot="badges">
          {badges.map(({ tone, text }) => (
            <li class="badge" data-tone={tone}>
              {text}
            </li>
          ))}
        </ul>
      </div>
      <div data-slot="banners" role="alert">
        {banners.map(({ tone, text }) => (
          <p class="banner" data-tone={tone}>
            {text}
          </p>
        ))}
      </div>
    </header>
  )
}

/** What the pages of stations and gates show. */
export interface LanePageProps {
  localization: Localization
  status: PageStatus
  device: PageDevice
  nowMs: number
  operator: string | null
  hasSounds: boolean
  script?: FrameProps['script']
  recent?: FrameProps['recent']
}

/** A page of a station or a gate: the frame, the header and the dialog of the sign-in, around `children`. */
export function LanePage({ kind, page, children }: { kind: 'station' | 'gate'; page: LanePageProps; children: Child }) {
  const { localization, status, device, nowMs, operator, script, recent } = page
  const { texts } = localization
  const { deviceId } = device
  const title = deviceTitle(device, texts)
  return (
    <Frame
      title={`${title} · untag`}
      localization={localization}
      kind={kind}
      deviceId={deviceId}
      recent={recent}
      script={script}
    >
      <Header
        title={title}
        deviceId={deviceId}
        status={status}
        texts={texts}
        reader={{ nowMs, isStaff: operator !== null }}
      />
      {children}
      <SignIn texts={texts} />
    </Frame>
  )
}
