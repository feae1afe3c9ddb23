# Makefile - for hands that type make; ./dev does the work, and more: ./dev help
MAKEFLAGS += --silent --no-print-directory # stdout of dev belongs to the protocol; from elsewhere: make -s -C DIR dev
.PHONY: all build install dev-install test dev serve-http rootfs build-sandbox test-rootfs test-sandbox check clean

all build:
	./dev build

install:
	./dev install

# A tree to try things in: packages, programs, a rootfs; nothing outside of build/
dev-install: build rootfs

test:
	./dev test

rootfs build-sandbox:
	./dev rootfs basic

test-rootfs test-sandbox: rootfs
	/usr/bin/python3 -m pytest -q -p no:cacheprovider tests/rootfs

# An MCP server on stdin and stdout; MCP="--reply text" for its options
dev:
	./dev build >&2
	exec build/bin/brig-mcp $(MCP)

# The same at http://127.0.0.1:9015/mcp, for who knows the token: SANDBOX_API_TOKEN, or MCP="--token-file FILE"
serve-http:
	./dev build >&2
	exec build/bin/brig-mcp --http $(MCP)

check:
	./dev build >&2
	exec build/bin/brig-mcp --check $(MCP)

clean:
	./dev clean
