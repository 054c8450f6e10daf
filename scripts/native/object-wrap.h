// Included before the sources of better-sqlite3 if the headers of Node.js would make it abort (bin/native-sqlite.ts).
// The objects of the addon then register no cleanup hooks, as before Node.js 24.19. The addon closes open databases in
// its own hook.
#pragma once
#include <node.h>

namespace node {
inline void NoHook(v8::Isolate*, void (*)(void*), void*) {}
}

#define AddEnvironmentCleanupHook NoHook
#define RemoveEnvironmentCleanupHook NoHook
#include <node_object_wrap.h>
#undef AddEnvironmentCleanupHook
#undef RemoveEnvironmentCleanupHook
