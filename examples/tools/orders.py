#!/usr/bin/python3
"""A question about a shop, answered by a program that calls tools, and what the same calls cost a model that makes them one by one.

The shop's functions run here. The program, which a model could have written, runs in a jail, and sees no more than what they return.
"""
import json

import brig

PEOPLE = {f"c{n:03d}": f"Customer {n}" for n in range(60)}


def customers() -> list[dict]:
    """All customers: id and name."""
    return [{"id": number, "name": name} for number, name in PEOPLE.items()]


def orders(customer: str, limit: int = 20) -> list[dict]:
    """Orders of a customer, the newest first: number, date, cents, state (open, paid, late)."""
    if customer not in PEOPLE:
        raise brig.ToolError(f"there is no customer {customer}")
    first = int(customer[1:])
    return [{"number": 1000 * first + i, "date": f"2026-{1 + (first + i) % 12:02d}-15", "cents": 500 + 137 * ((first * 7 + i * 3) % 50),
             "state": ("open", "paid", "paid", "late")[(first + 2 * i) % 4]} for i in range(min(limit, 3 + first % 7))]


def remind(customer: str, text: str) -> str:
    """Sends a customer a mail."""
    return f"sent to {PEOPLE[customer]}"


PROGRAM = """
late = {}
for customer in tools.shop.customers():
    cents = sum(order["cents"] for order in tools.shop.orders(customer["id"]) if order["state"] == "late")
    if cents:
        late[customer["name"]] = cents / 100
for name, owed in sorted(late.items(), key=lambda item: -item[1])[:3]:
    print(f"{name} owes {owed:.2f}")
try:
    tools.shop.remind("c001", "please pay")
except ToolDenied as error:
    print(error)
"""


def one_by_one(shop: dict) -> int:
    """Characters that a model reads and writes when it makes these calls itself."""
    made = [("shop.customers", {}), *(("shop.orders", {"customer": number}) for number in PEOPLE)]
    return sum(len(json.dumps({"name": name, "arguments": args})) + len(json.dumps(shop[name[5:]](**args))) for name, args in made)


shop = {"customers": customers, "orders": orders, "remind": remind}
done = brig.run(PROGRAM, tools={"shop": shop}, deny="shop.remind")
print(done.stdout, end="")
calls = done.record["tool_calls"]
print(f"{calls['n']} calls, {calls['denied']} denied, {done.seconds * 1000:.0f} ms")
print(f"one by one, a model would read and write {one_by_one(shop)} characters; with code, {len(PROGRAM) + len(done.stdout)}")
