def greeting():
    return "hello from"
