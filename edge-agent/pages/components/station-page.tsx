import { deviceTitle } from '../model/status-view.ts'
import type { PageDevice, PageStatus } from '../model/wire.ts'
import { LONGEST_SCAN } from '../model/typed-burst.ts'
import { deviceTypeTexts } from '../texts/catalogue.ts'
import { Frame, LanguageSwitch, type FrameProps, type Localization } from './frame.tsx'
import { Header } from './header.tsx'
import { ScreenButtons } from './screen-buttons.tsx'
import { OperatorBar, SignIn } from './operator.tsx'
import { Stage, type StageView } from './stage.tsx'

export interface StationPageProps {
  localization: Localization
  status: PageStatus
  device: PageDevice
  nowMs: number
  operator: string | null
  hasSounds: boolean
  script?: FrameProps['script']
  view: StageView
}

/** Page on which staff or customers scan a receipt and see the result of the release. */
export function StationPage(props: StationPageProps) {
  const { localization, status, device, nowMs, operator, hasSounds, script, view } = props
  const { texts } = localization
  const title = deviceTitle(device, texts)
  return (
    <Frame
      title={`${title} · untag`}
      localization={localization}
      kind="station"
      deviceId={device.deviceId}
      script={script}
    >
      <Header title={title} deviceId={device.deviceId} status={status} texts={texts} nowMs={nowMs} />
      <main>
        <Stage view={view} prompt={deviceTypeTexts(texts, device.deviceType)} texts={texts} />
        {/* Screen readers read results here, and not from the stage: the return of the stage to idle is no result. */}
        <p class="aloud" role="status" aria-live="assertive" aria-atomic="true" data-slot="aloud" />
      </main>
      <footer>
        <form class="typed" data-slot="typed" method="post">
          <label for="code">{texts.typeCode}</label>
          <div class="row">
            <input
              id="code"
              data-slot="code"
              maxlength={LONGEST_SCAN}
              autocomplete="off"
              autocapitalize="characters"
              autocorrect="off"
              spellcheck={false}
              enterkeyhint="send"
            />
            <button type="submit">{texts.check}</button>
          </div>
        </form>
        <OperatorBar name={operator} texts={texts} />
        <ScreenButtons texts={texts} hasSounds={hasSounds} />
        <LanguageSwitch other={localization.other} />
      </footer>
      <SignIn texts={texts} />
    </Frame>
  )
}
