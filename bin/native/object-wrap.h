// Put before what better-sqlite3 is compiled from, where the headers of Node.js would make it abort (bin/native-sqlite.ts):
// objects of the addon take no cleanup hooks of their own, as before Node.js 24.19. The addon closes what is open by its own hook.
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
