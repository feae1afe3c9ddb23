# Completion of brig for fish. Commands and options are read from brig's own --help, so that they are those of the brig in PATH.

function __brig_commands
    brig $argv --help 2>/dev/null | string replace -rf '^  ([a-z][a-z-]*)  *(.*)' '$1\t$2'
end

# The words before the one that is typed, without brig itself.
function __brig_before
    set -l words (commandline -opc)
    string join \n -- $words[2..]
end

function __brig_is_first
    test (count (__brig_before)) -eq 0
end

# By their names, those without one by their ids; unless one stands before what is typed: behind it come files.
function __brig_a_session
    set -l sessions (brig session list --json 2>/dev/null | awk -F'"' '/^ *"session":/ { id = $4 } /^ *"name":/ { print $4 == "" ? id : $4 }')
    for word in $argv
        contains -- $word $sessions; and return
    end
    printf '%s\n' $sessions
end

# Words in the place of files, which stand beside them where fish adds these.
function __brig_words
    set -l before (__brig_before)
    set -l command $before[1]
    switch "$before[1]"
        case rootfs session
            if test (count $before) -eq 1
                __brig_commands $before[1]
                return
            end
            set command $before[1..2]
        case profile
            if test (count $before) -eq 1
                printf '%s\n' list check schema
                return
            end
    end
    switch "$before[-1]"
        case -p --profile
            brig profile list 2>/dev/null | string replace -r ' .*' ''
            return
        case --allow-missing
            printf '%s\n' memory cpus
            return
    end
    switch (commandline -ct)
        case '-*'
            brig $command --help 2>/dev/null | string replace -rf '^  (?:-., )?(--[a-z0-9-]*)(?: [A-Z]\S*)?  *(.*)' '$1\t$2'
            return
    end
    switch "$command"
        case help
            __brig_commands
        case explain profile
            brig profile list 2>/dev/null | string replace -r ' .*' ''
        case kill
            brig ps --json 2>/dev/null | string replace -rf '.*"run": "([0-9a-f-]*)".*' '$1'
        case 'rootfs verify'
            brig rootfs list 2>/dev/null | string replace -r ' .*' ''
        case 'session open' 'session list'
        case 'session *'
            __brig_a_session $before[3..]
        case shell
            __brig_a_session $before[2..]
    end
end

complete -c brig -n __brig_is_first -f -a '(__brig_commands)'
complete -c brig -n 'not __brig_is_first' -a '(__brig_words)'
