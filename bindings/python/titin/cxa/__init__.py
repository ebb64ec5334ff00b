"""Descriptions from the CxA files of MUSCLE 2: ``titin convert model.cxa.rb -o model.ymmsl``.

A CxA file is a script in Ruby. It is run by the user's ``ruby`` behind ``prelude.rb``, whose classes record instances,
couplings and properties; ``description`` writes them down as yMMSL.
"""
